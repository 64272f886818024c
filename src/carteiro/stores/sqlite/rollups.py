"""Notes for figures (see `carteiro.policy.rollups`), written in the transaction that they are about."""

import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

from carteiro.model import NewMessage
from carteiro.policy.rollups import DELAYS
from carteiro.stores.columns import FAR
from carteiro.stores.sqlite.places import DUE_AT, NO, STATE, TEMPLATE, TENANT, Row
from carteiro.stores.sqlite.rows import as_json, run

# The end of a sent message: attempts that were not declared, claim, provider, id there, duration in milliseconds.
Sent: TypeAlias = tuple[int, str, str, str, int]
_EDGES = (0, *DELAYS, FAR)


def note_accepted(db: sqlite3.Connection, new: Sequence[NewMessage], now: int) -> None:
    """Note new messages."""
    counts = Counter([(each.tenant, each.template_type) for each in new])
    _note(db, "accepted", [(*names, count) for names, count in counts.items()], now)


def note_sent(db: sqlite3.Connection, ended: Sequence[tuple[Row, Sent]], now: int) -> None:
    """Note messages that were just sent."""
    later = [each[0][NO] for each in ended if each[0][STATE] is not None]
    made_by = {}
    if later:
        found = run(db, "rollup_attempts", numbers=as_json(later)).fetchall()
        made_by = {no: (attempts, retry_of) for no, attempts, retry_of in found}
    groups: dict[tuple[Any, ...], list[int]] = {}
    slot = low = high = 0
    for row, (
        _,
        _,
        provider,
        _,
        ms,
    ) in ended:  # without a call for each: this is the path of every message
        delay = now - row[DUE_AT] if row[DUE_AT] < now else 0
        if not low <= delay < high:
            slot = bisect_right(DELAYS, delay)
            low, high = _EDGES[slot], _EDGES[slot + 1]
        made, retry_of = (1, None) if row[STATE] is None else made_by[row[NO]]
        key: tuple[Any, ...] = (row[TENANT], row[TEMPLATE], provider, made, slot)
        if retry_of is not None:
            key += (retry_of,)
        wait = delay - ms if ms < delay else 0
        if key in groups:
            group = groups[key]
            group[0] += 1
            group[1] += delay
            group[2] += wait
        else:
            groups[key] = [1, delay, wait]
    if groups:
        _note(db, "sent", [(*key, *sums) for key, sums in groups.items()], now)


def note_changed(
    db: sqlite3.Connection, changed: Sequence[tuple[int, list[Any]]], now: int
) -> None:
    """Note changes, by message number."""
    if changed:
        run(db, "rollup_changed", rows=as_json(changed), now=now)


def _note(db: sqlite3.Connection, what: str, rows: Sequence[Any], now: int) -> None:
    run(db, "rollup_note", what=what, at=now, figures=as_json(rows))

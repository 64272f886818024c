"""What providers tell later, on SQLite: the event, what it proves and whom it suppresses in one transaction."""

import sqlite3
from collections.abc import Sequence

import orjson

from carteiro.model import Feedback, MessageId, NoteAnswer
from carteiro.policy import lifecycle
from carteiro.policy.suppression import suppressions
from carteiro.stores.columns import in_ms
from carteiro.stores.sql.suppressions import put
from carteiro.stores.sqlite import ledger
from carteiro.stores.sqlite.database import SqliteSession, finished
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.rows import as_json, run
from carteiro.stores.sqlite.wake import SqliteWake
from carteiro.stores.sqlite.writer import Writer
from carteiro.stores.suppression_columns import told_of


class SqliteTracking:
    """See `carteiro.ports.tracking.Tracking` for what it promises."""

    def __init__(self, writer: Writer, wake: SqliteWake, options: SqliteOptions) -> None:
        self._writer = writer
        self._wake = wake
        self._options = options

    async def note(self, told: Sequence[Feedback]) -> list[NoteAnswer]:
        """Put feedback on the timelines of its messages, and draw the consequences."""
        clock, has_queue = self._options.clock, self._options.has_queue
        answers, has_work = await self._writer.do(
            lambda db: _note(db, told, clock(), has_queue=has_queue)
        )
        if has_work:
            self._wake.ring()
        return answers


def _note(
    db: sqlite3.Connection, told: Sequence[Feedback], now: int, *, has_queue: bool
) -> tuple[list[NoteAnswer], bool]:
    ids = list({each.message for each in told})
    known = _known(db, ids)
    found = ledger.load(db, list(known))
    changes = ledger.Changes(db, now, has_queue=has_queue)
    answers = []
    for each in told:
        held = found.get(each.message)
        if held is None or held.entry is None:
            answers.append(NoteAnswer.UNKNOWN)
            continue
        carriers, events = known[each.message]
        answer, change = lifecycle.note(
            held.entry, each, known=events, carriers=carriers, at=in_ms(each.at), now=now
        )
        if change is not None:
            changes.apply(held, change)
            events.add(each.event_id)
            tenant = held.entry.tenant
            finished(put(SqliteSession(db), tenant, told_of(tenant, suppressions(each), now)))
        answers.append(answer)
    return answers, changes.save()


def _known(
    db: sqlite3.Connection, ids: Sequence[MessageId]
) -> dict[MessageId, tuple[set[str], set[str]]]:
    """Who carried messages, and the ids of what was told of them; without those that are not known, or were erased."""
    rows = run(db, "track_known", ids=as_json(ids))
    return {
        identity: (set(orjson.loads(carriers or "[]")), set(orjson.loads(events or "[]")))
        for identity, to_address, carriers, events in rows
        if to_address is not None
    }

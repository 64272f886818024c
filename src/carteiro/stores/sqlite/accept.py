"""Accepts messages inside one transaction: admission first, then the rows, a list for each table.

If killed anywhere, nothing is stored: neither a message without its key nor a count without its message.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from carteiro.errors import TextUnfit
from carteiro.model import AcceptAnswer, Accepted, NewMessage
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.stores.columns import in_ms, moment
from carteiro.stores.sql.door import Admitted, admit, meet_each
from carteiro.stores.sqlite.database import SqliteSession, finished
from carteiro.stores.sqlite.moving import refuse_left
from carteiro.stores.sqlite.rollups import note_accepted
from carteiro.stores.sqlite.rows import as_json, insert_many, run, run_many

_TTL, _DUE = 7, 15  # of a message's row


def accept(
    db: sqlite3.Connection, new: Sequence[NewMessage], now: int, *, has_queue: bool = True
) -> list[AcceptAnswer]:
    """Commit messages and jobs; known ones are replayed. Without a queue here, others put the jobs."""
    if not new:  # a check whether it would accept
        refuse_left(db)
        return []
    session = SqliteSession(db)
    door, answers, fresh = finished(admit(session, new, now, meet_each))
    if fresh:
        _insert(db, fresh, now, has_queue=has_queue)
    finished(door.save(session, fresh, now))
    at = moment(now)
    accepted = iter([Accepted(message.id, at, recipient) for message, recipient in fresh])
    return [next(accepted) if answer is None else answer for answer in answers]


def _insert(
    db: sqlite3.Connection, fresh: Sequence[Admitted], now: int, *, has_queue: bool
) -> None:
    for new, _ in fresh:  # SQL functions cut a text at U+0000
        names = f"{new.request_id}{new.external_id}{new.to}{new.subject}{new.template_type}"
        if "\0" in names or "\0" in new.content:
            raise TextUnfit
    # Assigned here, not by SQLite: rows of a message then need no lookup of its number.
    [first] = run(db, "accept_next_no").fetchone()
    numbered = list(enumerate(fresh, first))
    rows: list[Any] = [
        (
            *(no, new.id, new.tenant, new.kind, 1 if new.declares else 0, str(new.delivery)),
            *(new.priority, new.ttl // MILLISECOND, new.request_id),
            0 if new.external_id is None else new.external_id,
            0 if recipient is None else recipient,
            0 if new.to is None else new.to,
            0 if new.subject is None else new.subject,
            0 if new.template_type is None else new.template_type,
            as_json(new.tags) if new.tags else 0,
            *(now if new.due is None else max(now, in_ms(new.due)), now),
        )
        for no, (new, recipient) in numbered
    ]
    insert_many(db, "accept_messages", rows)
    note_accepted(db, [new for new, _ in fresh], now)
    insert_many(db, "accept_contents", [(no, new.content) for no, (new, _) in numbered])
    insert_many(db, "put_unfinished", [(row[_DUE] + row[_TTL], row[0]) for row in rows])
    tagged = [(no, new) for no, (new, _) in numbered if new.tags]
    tags = [(new.tenant, tag, now, no) for no, new in tagged for tag in new.tags]
    run_many(db, "accept_tags", tags)
    if has_queue:
        _put(db, rows, now)


def _put(db: sqlite3.Connection, rows: Sequence[Any], now: int) -> None:
    """Give each message its job, at the seat of its tenant."""
    jobs: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    for row in rows:
        jobs[row[3], row[2]].append(row)
    counted = [(*key, min([row[_DUE] for row in some]), len(some)) for key, some in jobs.items()]
    found = run(db, "take_seats", rows=as_json(counted)).fetchall()
    seated = [(no, row) for kind, tenant, no in found for row in jobs[kind, tenant]]
    ready = [(no, row[6], row[_DUE], row[1], row[0], 0) for no, row in seated if row[_DUE] <= now]
    insert_many(db, "put_ready", ready)
    delayed = [(row[0], no, row[_DUE], row[1], 0) for no, row in seated if row[_DUE] > now]
    insert_many(db, "put_delayed", delayed)

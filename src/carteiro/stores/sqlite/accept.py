"""Accepts messages inside one transaction: admission first, then the rows.

If killed anywhere, nothing is stored: neither a message without its key nor a count without its message.
"""

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from carteiro.model import EMAIL, AcceptAnswer, Accepted, NewMessage, RecipientId
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.stores.columns import FAR, in_ms, moment
from carteiro.stores.sql.door import Admitted, admit
from carteiro.stores.sqlite.database import SqliteSession, finished
from carteiro.stores.sqlite.ledger import touch_seats
from carteiro.stores.sqlite.moving import refuse_left
from carteiro.stores.sqlite.rows import as_json, run, with_documents


def accept(
    db: sqlite3.Connection, new: Sequence[NewMessage], now: int, *, has_queue: bool = True
) -> list[AcceptAnswer]:
    """Commit messages and jobs; known ones are replayed. Without a queue here, others put the jobs."""
    if not new:  # a check whether it would accept
        refuse_left(db)
        return []
    session = SqliteSession(db)
    door, answers, fresh = finished(admit(session, new, now))
    if fresh:
        _insert(db, fresh, now, has_queue=has_queue)
    finished(door.save(session, now))
    at, put = moment(now), iter(fresh)
    return [_accepted(next(put), at) if answer is None else answer for answer in answers]


def _accepted(fresh: Admitted, at: datetime) -> Accepted:
    message, recipient = fresh
    return Accepted(message.id, at, recipient)


def _insert(
    db: sqlite3.Connection, fresh: Sequence[Admitted], now: int, *, has_queue: bool
) -> None:
    messages: list[list[object]] = []
    events: list[list[object]] = []
    tags: list[tuple[int, str]] = []
    ready: list[int] = []
    parked: list[int] = []
    touched: dict[tuple[str | None, str | None], list[int]] = {}
    # Assigned here, not by SQLite: rows of a message then need no lookup of its number.
    [first] = run(db, "accept_next_no").fetchone()
    for no, (new, recipient) in enumerate(fresh, first):
        due = now if new.due is None else max(now, in_ms(new.due))
        messages.append(_message_row(new, recipient, due=due))
        if new.kind == EMAIL:
            events.append([new.id, "ENQUEUED", {"requestId": new.request_id}, now])
        if new.tags:
            tags.extend((no, tag) for tag in new.tags)
        (parked if due > now else ready).append(no)
        seat = touched.setdefault((new.kind, new.tenant), [FAR, 0])
        seat[0] = min(seat[0], due)
        seat[1] += 1
    run(db, "accept_messages", rows=as_json(messages), first=first, now=now)
    contents = as_json([new.content for new, _ in fresh])
    run(db, "accept_contents", contents=contents, first=first)
    if tags:
        run(db, "accept_tags", rows=as_json(tags))
    if events:
        run(db, "write_events", rows=with_documents(events))
    if not has_queue:
        return
    if ready:
        run(db, "put_ready", numbers=as_json(ready))
    if parked:
        run(db, "put_parked", numbers=as_json(parked))
    touch_seats(db, touched)


def _message_row(new: NewMessage, recipient: RecipientId | None, *, due: int) -> list[object]:
    ttl_ms = new.ttl // MILLISECOND
    row: list[object] = [
        due,
        due + ttl_ms,
        new.id,
        new.tenant,
        new.kind,
        new.declares,
        new.delivery,
        new.priority,
        ttl_ms,
        new.request_id,
        new.external_id,
        recipient,
        new.to,
        new.subject,
    ]
    if (
        new.template_type is not None or new.tags
    ):  # most have neither, and a shorter row reads faster
        row += [new.template_type, new.tags or None]
    return row

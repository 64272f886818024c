"""What comes in, inside one transaction: who may, what came before, what is counted, then the rows.

Killed anywhere, nothing of it is seen: neither a message without its key nor a count without its message.
"""

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from carteiro.model import (
    AcceptAnswer,
    Accepted,
    MessageId,
    NewMessage,
    RecipientId,
    Replayed,
    TenantId,
)
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.policy.quota import QuotaCounts
from carteiro.stores.columns import FAR, in_ms, moment
from carteiro.stores.door import Door, First
from carteiro.stores.sql.door import firsts_under, meet
from carteiro.stores.sqlite.database import SqliteSession, finished
from carteiro.stores.sqlite.ledger import touch_seats
from carteiro.stores.sqlite.moving import refuse_left
from carteiro.stores.sqlite.rows import as_json, run, with_documents


class _Fresh(NamedTuple):
    """A message that is let in, and the recipient that it is for."""

    message: NewMessage
    recipient: RecipientId | None


def accept(
    db: sqlite3.Connection, new: Sequence[NewMessage], now: int, *, has_queue: bool = True
) -> list[AcceptAnswer]:
    """Commit messages and jobs; what is known already is replayed. Without a queue, others put the jobs."""
    if not new:  # somebody asks whether it would accept
        refuse_left(db)
        return []
    door, at = _door(db, new, now), moment(now)
    answers: list[AcceptAnswer] = []
    fresh: list[_Fresh] = []
    for message in new:
        answer = door.refusal(message)
        if answer is None:
            told = message.recipient
            recipient = (
                None
                if told is None
                else finished(meet(SqliteSession(db), message.tenant, told, now))
            )
            fresh.append(_Fresh(message, recipient))
            door.let_in(message, recipient)
            answer = Accepted(message.id, at, recipient)
        answers.append(answer)
    if fresh:
        _insert(db, fresh, now, has_queue=has_queue)
        _save(db, door, now)
    return answers


def _door(db: sqlite3.Connection, new: Sequence[NewMessage], now: int) -> Door:
    """Asks only for what is asked for."""
    return Door(
        _replays(db, new), _tenants(db, new), _firsts(db, new, now), _tallies(db, new, now), now
    )


def _save(db: sqlite3.Connection, door: Door, now: int) -> None:
    """Write the keys and the counts."""
    if door.keys:
        run(db, "accept_save_keys", rows=as_json(door.keys), now=now)
    if counts := door.counts():
        run(db, "accept_save_counts", rows=as_json(counts))


# --- what was there before --------------------------------------------------------------------


def _replays(db: sqlite3.Connection, new: Sequence[NewMessage]) -> dict[MessageId, Replayed]:
    rows = run(db, "accept_known", ids=as_json([message.id for message in new]))
    return {row[0]: Replayed(row[0], moment(row[1]), row[2], row[3]) for row in rows}


def _tenants(db: sqlite3.Connection, new: Sequence[NewMessage]) -> dict[TenantId, bool]:
    """The tenants that are known, and whether they are disabled."""
    ids = as_json(list({message.tenant for message in new}))
    return {row[0]: bool(row[1]) for row in run(db, "accept_tenants", ids=ids)}


def _firsts(
    db: sqlite3.Connection, new: Sequence[NewMessage], now: int
) -> dict[tuple[TenantId, str], First]:
    keys = [(each.tenant, each.key.key) for each in new if each.key is not None]
    return finished(firsts_under(SqliteSession(db), keys, now)) if keys else {}


def _tallies(
    db: sqlite3.Connection, new: Sequence[NewMessage], now: int
) -> dict[TenantId, QuotaCounts]:
    counted: dict[TenantId, list[tuple[int, int, int]]] = {
        each.tenant: [] for each in new if each.limits is not None and each.limits.has_any
    }
    if counted:
        for tenant, *row in run(db, "accept_counts", tenants=as_json(list(counted))):
            counted[tenant].append(tuple(row))
    return {tenant: QuotaCounts(now, rows) for tenant, rows in counted.items()}


# --- what is written --------------------------------------------------------------------------


def _insert(db: sqlite3.Connection, fresh: Sequence[_Fresh], now: int, *, has_queue: bool) -> None:
    messages: list[list[object]] = []
    events: list[list[object]] = []
    tags: list[tuple[int, str]] = []
    ready: list[int] = []
    parked: list[int] = []
    touched: dict[tuple[str | None, str | None], list[int]] = {}
    # Given here, not by SQLite: what belongs to a message need not look its number up by its id.
    [first] = run(db, "accept_next_no").fetchone()
    for no, (new, recipient) in enumerate(fresh, first):
        due = now if new.due is None else max(now, in_ms(new.due))
        messages.append(_message_row(new, recipient, due=due))
        events.extend(
            [new.id, event.type, event.metadata, now - event.ago // MILLISECOND]
            for event in new.events
        )
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
        due,
        due + ttl_ms,
    ]
    if new.template_type is not None or new.tags:  # most have neither: a shorter row reads faster
        row += [new.template_type, new.tags or None]
    return row

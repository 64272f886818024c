"""Between rows and values: times, failures, entries, and lists as JSON.

Lists travel into a statement as one JSON text and are unfolded there by ``json_each``: one call for
many rows, during which SQLite runs without the interpreter's lock. A call per row would give the
lock up and take it back each time, and wait for the event loop each time.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any, cast

import orjson

from carteiro.model import (
    Category,
    Failure,
    Recipient,
    RecipientId,
    Scope,
    State,
    StoredMessage,
    TenantId,
)
from carteiro.policy.lifecycle import Entry
from carteiro.stores.sqlite.opening import sql

FAR = 2**62  # an alarm that never rings
Parameters = Mapping[str, object]
_STATES: Mapping[str, State] = {
    state.value: state for state in State
}  # a look-up costs less than State(…)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

_MOST_FAILURES = 1024  # the same few come again and again

statement = cache(sql)


def run(db: sqlite3.Connection, operation: str, **parameters: object) -> sqlite3.Cursor:
    """Run the statement of one operation's file."""
    return db.execute(statement(operation), parameters)


def as_json(rows: Sequence[object]) -> str:
    """A list as one JSON text."""
    return orjson.dumps(rows).decode()


def in_ms(moment: datetime) -> int:
    """Milliseconds since 1970, rounded up: nothing is due before its time."""
    return -((_EPOCH - moment) // _MILLISECOND)


def moment(ms: int) -> datetime:
    """The moment of so many milliseconds since 1970."""
    return _EPOCH + ms * _MILLISECOND


def maybe_moment(ms: int | None) -> datetime | None:
    """The moment, if there is one."""
    return None if ms is None else moment(ms)


@lru_cache(_MOST_FAILURES)
def failure_text(failure: Failure | None) -> str | None:
    """A failure as it is stored."""
    if failure is None:
        return None
    return orjson.dumps(
        {
            "code": failure.code,
            "category": failure.category,
            "retryable": failure.retryable,
            "scope": failure.scope,
            "reason": failure.reason,
            "rule": failure.rule,
            "original_code": failure.original_code,
        }
    ).decode()


@lru_cache(_MOST_FAILURES)
def failure_of(text: str | None) -> Failure | None:
    """A failure as it was stored."""
    if text is None:
        return None
    stored = orjson.loads(text)
    category, scope = Category(stored.pop("category")), Scope(stored.pop("scope"))
    return Failure(category=category, scope=scope, **stored)


def entry_of(row: Sequence[Any]) -> Entry:
    """A ledger entry out of its columns, in the order of ``load_entries.sql``."""
    entry = Entry(*row)
    entry.state = _STATES[entry.state]
    entry.declares = bool(entry.declares)
    if entry.failure is not None:
        entry.failure = failure_of(cast("str", entry.failure))
    return entry


def entry_row(entry: Entry) -> list[object]:
    """The columns of ``save_entries.sql``, behind the number of the message."""
    return [
        entry.state,
        entry.due_at,
        entry.expires_at,
        entry.attempts,
        entry.charged,
        entry.in_doubt,
        entry.round,
        entry.revision,
        entry.holder,
        entry.held_until,
        entry.cancel_requested_at,
        entry.evidence,
        entry.provider,
        entry.provider_id,
        failure_text(entry.failure),
        entry.duration_ms,
        entry.finished_at,
    ]


def recipient_of(row: Sequence[Any]) -> Recipient:
    """A recipient out of its nine columns."""
    identity, tenant, email, external_id, document, razao_social, nome, created, deleted = row
    return Recipient(
        id=RecipientId(identity),
        tenant=TenantId(tenant),
        email=email,
        external_id=external_id,
        cpf_cnpj_hash=document,
        razao_social=razao_social,
        nome=nome,
        created_at=moment(created),
        deleted_at=maybe_moment(deleted),
    )


def message_of(row: Sequence[Any]) -> StoredMessage:
    """A message out of the columns of ``message.sql``."""
    values = list(row)
    values[3] = State(values[3])
    for index in (5, 6, 24):
        values[index] = moment(values[index])
    for index in (13, 14, 25):
        values[index] = maybe_moment(values[index])
    values[22] = failure_of(values[22])
    values[23] = None if values[23] is None else values[23] * _MILLISECOND
    values[27] = () if values[27] is None else tuple(orjson.loads(values[27]))
    return StoredMessage(*values)

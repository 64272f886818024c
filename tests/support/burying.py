"""Messages that end as dead letters."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carteiro.model import (
    EMAIL,
    Category,
    Dead,
    DeadFilter,
    DeadLetter,
    DeadReason,
    KindName,
    MessageId,
    TenantId,
)
from carteiro.ports import Backend
from carteiro.stores.sql.dead_letters import SqlDeadLetters
from support.builders import ACME, a_failure, a_message, an_id
from support.steps import accepted, claimed_alone, settled

_NOON = datetime(2027, 1, 15, 8, tzinfo=UTC)


async def buried(
    backend: Backend,
    tenant: str = ACME,
    *,
    reason: DeadReason = DeadReason.PERMANENT_ERROR,
    kind: KindName = EMAIL,
    failure: dict[str, Any] | None = None,
    **changes: Any,
) -> MessageId:
    """A message that died so; ``failure`` are fields of its failure, ``changes`` fields of the message."""
    [message] = await accepted(
        backend.store, a_message(tenant, kind=kind, declares=kind == EMAIL, **changes)
    )
    job = await claimed_alone(backend.store, kinds=(kind,))
    fields = {"code": "550", "category": Category.PERMANENT_ERROR} | (failure or {})
    await settled(backend.store, job, Dead(reason, a_failure(**fields)))
    return message


async def found(backend: Backend, **wanted: Any) -> list[MessageId]:
    """Ids of the dead letters that match; ``wanted`` are fields of a `DeadFilter`."""
    page = await backend.dead_letters.find(DeadFilter(**wanted))
    return [letter.id for letter in page.rows]


def contents_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of contents that each following statement reads with its dead letters, if any."""
    read: list[int] = []
    load = SqlDeadLetters._loaded

    async def loaded(self: SqlDeadLetters, *given: Any, **named: Any) -> list[DeadLetter]:
        letters = await load(self, *given, **named)
        if contents := sum(bool(each.content) for each in letters):
            read.append(contents)
        return letters

    monkeypatch.setattr(SqlDeadLetters, "_loaded", loaded)
    return read


def a_letter(**changes: Any) -> DeadLetter:
    """A dead letter; ``changes`` are its fields."""
    fields: dict[str, Any] = {
        "id": an_id(),
        "tenant": TenantId(ACME),
        "kind": EMAIL,
        "content": '{"to":"ana@example.com"}',
        "reason": DeadReason.MAX_ATTEMPTS_EXCEEDED,
        "failed_attempts": 5,
        "failure": a_failure(),
        "failed_at": _NOON,
        "enqueued_at": _NOON - timedelta(minutes=5),
        "moved_at": _NOON,
        "ttl": timedelta(days=7),
        "redriven_at": None,
        "group": "0123456789ab",
    }
    return DeadLetter(**(fields | changes))

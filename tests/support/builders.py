"""Test data, with every field that does not matter filled in."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from carteiro.model import (
    EMAIL,
    ZERO,
    Category,
    ClaimId,
    Dead,
    DeadReason,
    Failure,
    KindName,
    MessageId,
    NewMessage,
    Retry,
    Scope,
    Sent,
    State,
    StoredMessage,
    Tenant,
    TenantId,
)

ACME = TenantId("acme")
BRASA = TenantId("brasa")
TASK = KindName("task:tidy")
TTL = timedelta(days=1)
ACCEPTED = datetime(2027, 1, 1, 8, 0, tzinfo=UTC)

_numbers = count(1)


def an_id() -> MessageId:
    """A new message id, greater than all before it."""
    return MessageId(f"01900000-0000-7000-8000-{next(_numbers):012x}")


def a_claim_id() -> ClaimId:
    return ClaimId(f"01900000-0000-7000-9000-{next(_numbers):012x}")


def a_message(
    tenant: str = ACME,
    *,
    kind: KindName = EMAIL,
    priority: int = 5,
    due: datetime | None = None,
    ttl: timedelta = TTL,
    **changes: Any,
) -> NewMessage:
    """An e-mail that is ready to be committed; ``changes`` are fields of `NewMessage`."""
    fields: dict[str, Any] = {
        "id": an_id(),
        "content": '{"html":"<p>Bom dia</p>"}',
        "request_id": "request-1",
        "to": "ana@example.com",
        "subject": "Bom dia",
    }
    fields.update(changes)
    return NewMessage(
        tenant=TenantId(tenant), kind=kind, priority=priority, due=due, ttl=ttl, **fields
    )


def a_stored_message(state: State = State.ENQUEUED, **changes: Any) -> StoredMessage:
    """A message of the ledger, accepted at the start of 2027; ``changes`` are its fields."""
    fields: dict[str, Any] = {
        "id": MessageId("m"),
        "tenant": ACME,
        "kind": EMAIL,
        "priority": 5,
        "due_at": ACCEPTED,
        "expires_at": ACCEPTED + TTL,
        "attempts": 0,
        "charged": 0,
        "in_doubt": 0,
        "round": 1,
        "revision": 1,
        "holder": None,
        "held_until": None,
        "cancel_requested_at": None,
        "request_id": "request-1",
        "external_id": None,
        "recipient_id": None,
        "to": "ana@example.com",
        "subject": "Bom dia",
        "provider": None,
        "provider_id": None,
        "failure": None,
        "duration": None,
        "created_at": ACCEPTED,
        "finished_at": None,
        "content": None,
    }
    return StoredMessage(state=state, **(fields | changes))


def a_task(tenant: str = ACME, **changes: Any) -> NewMessage:
    """A task: a message of a kind that does not declare."""
    fields: dict[str, Any] = {"kind": TASK, "declares": False, "to": None, "subject": None}
    return a_message(tenant, **(fields | changes))


def messages(number: int, tenant: str = ACME, **changes: Any) -> list[NewMessage]:
    """This many messages of a tenant."""
    return [a_message(tenant, **changes) for _ in range(number)]


def a_tenant(id: str = ACME, **changes: Any) -> Tenant:  # the field's own name
    """A tenant without any limit; ``changes`` are fields of `Tenant`."""
    return Tenant(TenantId(id), **changes)


def tenants_named(names: Sequence[str]) -> list[Tenant]:
    """Tenants of equal weight."""
    return [a_tenant(name) for name in names]


def a_failure(code: str = "421", **changes: Any) -> Failure:
    """A retryable failure; ``changes`` are fields of `Failure`."""
    fields: dict[str, Any] = {
        "category": Category.TRANSIENT_ERROR,
        "retryable": True,
        "scope": Scope.DESTINATION,
        "reason": "Service not available, try later",
        "rule": "smtp.421",
        "original_code": "421 4.3.2",
    }
    return Failure(code=code, **(fields | changes))


def sent(provider_id: str = "provider-1") -> Sent:
    """The verdict on a message that the sandbox accepted."""
    return Sent("sandbox", provider_id)


def retry(after: timedelta = ZERO, *, charged: bool = True) -> Retry:
    """The verdict of a retryable failure."""
    return Retry(after, charged=charged, failure=a_failure())


def dead(reason: DeadReason = DeadReason.PERMANENT_ERROR, *, charged: bool = True) -> Dead:
    """The verdict of a permanent failure."""
    failure = a_failure("550", retryable=False, category=Category.PERMANENT_ERROR)
    return Dead(reason, failure, charged=charged)

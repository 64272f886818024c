"""Messages that fail, for tests of failure groups."""

from dataclasses import replace
from datetime import timedelta

from carteiro.model import (
    Category,
    Dead,
    DeadReason,
    Failure,
    FailureFilter,
    FailureGroup,
    MessageId,
    Retry,
    Scope,
)
from carteiro.policy.grouping import group_of
from carteiro.ports import Backend
from support.builders import ACME, a_failure, a_message
from support.clock import StoreClock
from support.steps import accepted, attempted

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
WEEK = timedelta(days=7)
FULL = a_failure(
    "452",
    scope=Scope.RECIPIENT,
    reason="452 <ana@example.com> mailbox is full",
    rule="smtp.text.full@rcpt",
)
UNKNOWN = a_failure(
    "550",
    category=Category.PERMANENT_ERROR,
    retryable=False,
    scope=Scope.RECIPIENT,
    reason="550 5.1.1 <ana@example.com>: user unknown",
    rule="smtp.text.unknown@rcpt",
)
FULL_ID, UNKNOWN_ID = group_of("sandbox", FULL), group_of("sandbox", UNKNOWN)


def numbered(number: int, failure: Failure = FULL) -> Failure:
    """A failure of a group of its own."""
    return replace(failure, rule=f"{failure.rule.partition('@')[0]}{number}")


async def failed(
    backend: Backend, clock: StoreClock, tenant: str = ACME, *, failure: Failure = FULL
) -> MessageId:
    """A message whose first attempt failed; the next one is far away."""
    [message] = await accepted(backend.store, a_message(tenant, ttl=5 * WEEK))
    await attempted(backend.store, Retry(4 * WEEK, charged=True, failure=failure))
    clock.advance(SECOND)
    return message


async def died(
    backend: Backend, clock: StoreClock, tenant: str = ACME, *, failure: Failure = FULL
) -> MessageId:
    """A message whose only attempt failed."""
    [message] = await accepted(backend.store, a_message(tenant))
    await attempted(backend.store, Dead(DeadReason.PERMANENT_ERROR, failure, charged=True))
    clock.advance(SECOND)
    return message


async def group_in(
    backend: Backend, group: str = FULL_ID, tenant: str | None = None
) -> FailureGroup:
    """One group, as the list has it."""
    wanted = FailureFilter(tenant=tenant)  # type: ignore[arg-type]
    [found] = [each for each in (await backend.failures.list(wanted)).rows if each.id == group]
    return found


async def folded(backend: Backend, limit: int = 1000) -> None:
    """All notes are added up."""
    while await backend.rollups.fold(limit=limit, most=1000):
        pass

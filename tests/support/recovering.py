"""Dead letters of a provider that fails for a time, and their automatic redrives."""

from datetime import timedelta
from typing import Any

from carteiro.model import (
    AutomaticPlan,
    Category,
    Dead,
    DeadLetter,
    DeadReason,
    Failure,
    MessageId,
    Ramp,
    Redrive,
    Scope,
    TenantId,
)
from carteiro.ports import Backend
from support.builders import ACME, a_failure, a_message
from support.steps import accepted, claimed_and_declared, settled

PLAN = AutomaticPlan()
COOL_DOWN = PLAN.cool_down + PLAN.gathering  # until a redrive starts
PROVIDER = "smtp"


def outage(**changes: Any) -> Failure:
    """A failure of a provider that may recover; ``changes`` are its fields."""
    fields = {"scope": Scope.PROVIDER, "category": Category.TIMEOUT_ERROR, "rule": "timeout"}
    return a_failure("SMTP_TIMEOUT", **(fields | changes))


def died(
    failure: Failure | None = None,
    reason: DeadReason = DeadReason.MAX_ATTEMPTS_EXCEEDED,
) -> Dead:
    """The verdict on a message whose last attempt failed like this."""
    return Dead(reason, failure or outage(), charged=True)


async def lost(
    backend: Backend,
    tenant: str = ACME,
    *,
    provider: str = PROVIDER,
    verdict: Dead | None = None,
    **changes: Any,
) -> MessageId:
    """A message that died in an outage of the provider; ``changes`` are fields of the message."""
    [message] = await accepted(backend.store, a_message(tenant, **changes))
    job = await claimed_and_declared(backend.store, provider=provider)
    await settled(backend.store, job, verdict or died())
    return message


async def letter_of(backend: Backend, message: MessageId) -> DeadLetter:
    """The dead letter of a message."""
    letter = await backend.dead_letters.show(message)
    assert letter is not None
    return letter


async def ripe(
    backend: Backend, provider: str = PROVIDER, plan: AutomaticPlan = PLAN, **asked: Any
) -> list[TenantId]:
    """The tenants whose dead letters may be redriven now."""
    asked = {"limit": 100} | asked
    return await backend.automatic_redrives.ripe(provider, plan, **asked)


async def start(
    backend: Backend,
    tenant: str = ACME,
    *,
    provider: str = PROVIDER,
    plan: AutomaticPlan = PLAN,
    ramp: Ramp = Ramp(),  # noqa: B008 - a value
) -> Redrive | None:
    """An automatic redrive, if one may start."""
    return await backend.automatic_redrives.start(TenantId(tenant), provider, plan, ramp)


async def started(backend: Backend, tenant: str = ACME, **asked: Any) -> Redrive:
    """An automatic redrive that has started."""
    redrive = await start(backend, tenant, **asked)
    assert redrive is not None
    return redrive


def cool_downs(plan: AutomaticPlan = PLAN) -> list[timedelta]:
    """The time before the redrive of each round."""
    return [plan.cool_down_after(done) + plan.gathering for done in range(plan.rounds)]

"""The recovery that a dead letter waits for: read from the store, for the library, the API and the command line."""

from datetime import UTC, datetime

from carteiro.model import AutomaticPlan, DeadLetter, StoredMessage, Tenant
from carteiro.policy.automatic_redrives import (
    NEWS,
    AwaitedRecovery,
    Circumstances,
    Standing,
    awaited_recovery,
    standing_of,
)
from carteiro.policy.breaker import LONGEST_OPEN
from carteiro.ports import Backend


async def awaited_recovery_of(
    backend: Backend,
    letter: DeadLetter,
    message: StoredMessage | None = None,
    *,
    plan: AutomaticPlan,
    now: datetime | None = None,
) -> AwaitedRecovery:
    """The recovery that a dead letter waits for; ``message``, if the caller has it."""
    now = now or datetime.now(UTC)
    message = message or await backend.reading.message(letter.id)
    if message is None:
        return AwaitedRecovery("Its message is gone: it cannot be redriven.")
    [tenant] = await backend.tenants.find([letter.tenant])
    around = Circumstances(
        plan=plan,
        tenant=tenant or Tenant(letter.tenant),
        is_on_for_type=await _is_on_for_type(backend, message),
        standing=await _standing(backend, letter.waits_for, now),
        now=now,
    )
    return awaited_recovery(letter, message, around)


async def _is_on_for_type(backend: Backend, message: StoredMessage) -> bool:
    if message.template_type is None:
        return True
    versions = await backend.templates.versions(message.tenant, message.template_type)
    return not versions or versions[0].automatic_redrive


async def _standing(backend: Backend, provider: str | None, now: datetime) -> Standing:
    """The standing of the provider as the store knows it."""
    if provider is None:
        return Standing.QUIET
    news = await backend.rollups.split("provider", "minute", NEWS)
    opened = [each.opened.get(provider) for each in await backend.reports.show()]
    is_open = any(at is not None and abs(now - at) <= LONGEST_OPEN for at in opened)
    return standing_of(news.get(provider, {}), is_open=is_open)

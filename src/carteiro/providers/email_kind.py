"""The kind of job that sends e-mail: its providers, their order, and its retries."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

from carteiro.config import Settings, provider_names, spec_of
from carteiro.email.message import Email, max_retries_of
from carteiro.email.templates.rendering import render_email
from carteiro.email.unsubscribe import with_link
from carteiro.errors import ConfigError, FieldError, SenderRefused
from carteiro.jobs.kind import Kind, Learn, Overrule, Render
from carteiro.model import EMAIL, LeasedJob, MessageId, TenantId, value
from carteiro.path.confirm import confirm
from carteiro.path.track import learn_refusals
from carteiro.policy.own_rules import overruled_outcome
from carteiro.policy.retry import PRESETS, RetryPolicy
from carteiro.policy.routing import Routes
from carteiro.policy.tenancy import CLAIMED_BY_ANOTHER
from carteiro.policy.unsubscribe import OneClick
from carteiro.ports import Backend
from carteiro.ports.provider import Fault, Provider, RemoteProvider
from carteiro.providers.failover import Chain
from carteiro.providers.rate_limiter import Pacer
from carteiro.providers.registry import limits_of, make_provider
from carteiro.runtime.domain_cache import DomainCache
from carteiro.runtime.lessons import Lessons

_NO_STORE: Any = SimpleNamespace(inbox=None)  # providers that deliver nothing need none


def email_kind(
    settings: Settings, backend: Backend, *, lessons: Lessons | None = None
) -> tuple[Kind, bool]:
    """The kind that sends e-mail; True if one of its providers is remote.

    A provider on this machine needs no circuit breaker and no rate limiter. ``lessons``: None: they are not applied.
    """
    routes = routes_of(settings)
    providers = {name: make_provider(name, settings, backend) for name in routes.names}
    kinds = {
        name: _kind(name, each, settings, backend, lessons) for name, each in providers.items()
    }
    usual = kinds[routes.default[0]]
    is_remote = any(each.features.is_remote for each in providers.values())
    if len(kinds) == 1 and not is_remote:
        return usual, is_remote
    limits = {name: limits_of(each, settings) for name, each in providers.items()}
    pacers = {name: Pacer(name, backend.rates, each) for name, each in limits.items() if each}
    chain = Chain(kinds, routes, pacers=pacers)
    calls = [kind.connections for kind in kinds.values()]
    usual = replace(usual, connections=sum(calls) if all(calls) else 0)
    return replace(usual, chain=chain, close=_all_closed(kinds, pacers)), is_remote


def routes_of(settings: Settings) -> Routes:
    """The providers of each route, in order."""
    return Routes(
        provider_names(settings.provider),
        by_type={name: provider_names(each) for name, each in settings.type_routes.items()},
        by_tenant={
            TenantId(name): provider_names(each) for name, each in settings.tenant_routes.items()
        },
    )


@value
class Looked:
    """A provider that was checked, and its problems, if any."""

    name: str
    is_remote: bool
    faults: tuple[Fault, ...] = ()


async def look_at_providers(settings: Settings) -> list[Looked]:
    """Check each provider; nothing is sent, and no store is needed."""
    return [await _look_at(name, settings) for name in routes_of(settings).names]


async def _look_at(name: str, settings: Settings) -> Looked:
    try:
        provider = make_provider(name, settings, _NO_STORE)
    except ConfigError as error:
        advice = "correct it: carteiro config show says where each setting comes from"
        return Looked(name, is_remote=True, faults=(Fault(str(error), advice, is_deadly=True),))
    if not isinstance(provider, RemoteProvider):
        return Looked(name, provider.features.is_remote)
    try:
        return Looked(name, is_remote=True, faults=tuple(await provider.check()))
    except Exception as error:  # noqa: BLE001 - a server may answer anything
        told = f"it sent an answer that cannot be read ({type(error).__name__})"
        fault = Fault(told, f"check that its address is one of {provider.name}", is_deadly=True)
        return Looked(name, is_remote=True, faults=(fault,))
    finally:
        await provider.close()


def _kind(
    name: str, provider: Provider, settings: Settings, backend: Backend, lessons: Lessons | None
) -> Kind:
    spec, region = spec_of(name), name.partition(":")[2]
    return Kind(
        name=EMAIL,
        provider=name,
        confirm=confirm,
        render=rendering(backend, settings.one_click),
        deliver=provider.deliver,
        overrule=_overrule(name, settings),
        policy=email_policy(settings),
        declares=True,
        call_limit=settings.delivery.call_limit,
        start_within=settings.send_limit.tolerance or None,
        connections=getattr(provider, "connections", 0),
        replays_for=provider.features.replays_for,
        lesson=None if lessons is None else partial(lessons.about, provider=name),
        learn=_learn(backend) if provider.features.is_remote else None,
        span=spec.span(settings, region),
        close=provider.close if isinstance(provider, RemoteProvider) else None,
    )


def rendering(backend: Backend, offer: OneClick | None) -> Render:
    """Render an e-mail that came in by SQL; another tenant may have claimed the domain of its From since."""
    domains = DomainCache(backend.tenants)

    async def render(email: Email, *, tenant: TenantId, message: MessageId) -> Email:
        rendered = await render_email(email, tenant=tenant, templates=backend.templates)
        if await domains.other_owner(tenant, email.from_) is not None:
            raise SenderRefused([FieldError("from", CLAIMED_BY_ANOTHER)])
        return with_link(rendered, offer, tenant=tenant, message=message)

    return render


def _learn(backend: Backend) -> Learn:
    """Learn only from remote providers: an error that the sandbox plays says nothing about an address."""
    return partial(learn_refusals, suppressions=backend.suppressions)


def _overrule(name: str, settings: Settings) -> Overrule | None:
    """The outcome after the operator's rules; None: there are no rules."""
    rules = settings.own_rules
    if not rules:
        return None
    spec = spec_of(name)
    return partial(overruled_outcome, rules=rules, provider=spec.name, mx=spec.host(settings))


def _all_closed(kinds: dict[str, Kind], pacers: dict[str, Pacer]) -> Callable[[], Awaitable[None]]:
    closes = [kind.close for kind in kinds.values() if kind.close is not None]

    async def close() -> None:
        await asyncio.gather(*(each.close() for each in pacers.values()))
        await asyncio.gather(*(each() for each in closes))

    return close


def email_policy(settings: Settings) -> Callable[[LeasedJob], RetryPolicy]:
    """The retry policy of a job: of the preset that its template or tenant names, else the configured one.

    An e-mail of the table queue has the preset `transactional`, with the number of retries of its row.
    """
    configured = retry_policy(settings)
    named: dict[str | None, RetryPolicy] = {
        name: _as_configured(preset, settings) for name, preset in settings.presets.items()
    }

    def policy(job: LeasedJob) -> RetryPolicy:
        most = max_retries_of(job.content)
        if most is not None:
            return replace(named["transactional"], max_attempts=1 + most)
        return named.get(job.retry_preset, configured)

    return policy


def table_queue_wait(failed: int, max_retries: int) -> timedelta | None:
    """The wait after failure number ``failed`` of a row of the table queue; None: it was the last."""
    return None if failed > max_retries else PRESETS["transactional"].delay(failed, 0.5)


def retry_policy(settings: Settings) -> RetryPolicy:
    """The retry policy in force."""
    return _as_configured(settings.presets[settings.retry_preset], settings)


def _as_configured(preset: RetryPolicy, settings: Settings) -> RetryPolicy:
    return replace(
        preset,
        charge=settings.retry.charge,
        is_patient=settings.retry.patient,
        max_in_doubt_resends=settings.delivery.max_in_doubt_resends,
    )

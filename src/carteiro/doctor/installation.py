"""Checks of an installation against its settings: providers, feedback, routes, senders and templates."""

import asyncio
import difflib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict

from carteiro.config import ProviderSpec, Settings, specs
from carteiro.email.templates.rendering import faults_of
from carteiro.errors import ConfigError, needing_extra
from carteiro.model import Tenant
from carteiro.model.checkup import Finding, Level
from carteiro.policy.tenancy import asked_sender
from carteiro.policy.unsubscribe import PATH
from carteiro.ports import Backend, Marks
from carteiro.providers import choice
from carteiro.providers.email_kind import Looked, routes_of
from carteiro.runtime.domain_cache import DomainCache
from carteiro.runtime.fetching import fetch


def of_providers(looked: Iterable[Looked]) -> Iterator[Finding]:
    """Check providers: warn if mail would wait, fail if mail would become dead letters."""
    for each in looked:
        if not each.faults:
            yield Finding("provider", Level.OK, f"{each.name} can be used")
        for fault in each.faults:
            level = Level.FAIL if fault.is_deadly else Level.WARN
            yield Finding("provider", level, f"{each.name}: {fault.told}", fault.advice)


async def of_choice(settings: Settings, marks: Marks) -> list[Finding]:
    """Fail if a worker with these settings would refuse to send; see `providers.choice`."""
    try:
        await choice.check(settings, marks)
    except ConfigError as error:
        return [Finding("provider", Level.FAIL, str(error), "set provider")]
    return []


def of_feedback(settings: Settings) -> Iterator[Finding]:
    """Check that bounces and complaints are received; without them invalid addresses stay in use."""
    types = {name.partition(":")[0] for name in routes_of(settings).names}
    used = [spec for name, spec in specs().items() if name in types]
    for spec in used:
        found = list(spec.check(settings))
        yield from found
        # Otherwise its own check is more precise.
        if not any(each.check == "feedback" for each in found):
            yield from _of_feedback(spec, settings)
    if not any(spec.feedback for spec in used):
        yield Finding("feedback", Level.OK, "no configured provider reports events later")


def _of_feedback(spec: ProviderSpec, settings: Settings) -> Iterator[Finding]:
    if spec.feedback is None:
        return
    setting = spec.feedback.setting
    try:
        hears = spec.feedback.opens(settings, fetch)  # the same call as at the start of the API
    except ConfigError as error:
        advice = "set it: the API does not start without it"
        yield Finding("feedback", Level.FAIL, str(error), advice)
        return
    if hears is None:
        told = f"bounces and complaints of {spec.name} are not received: {setting} is not set"
        yield Finding("feedback", Level.WARN, told, "see docs/how-to/hear-from-providers.md")
    else:
        yield Finding("feedback", Level.OK, f"{spec.name}: received through {setting}")


def of_unsubscribe(settings: Settings) -> Finding:
    """Check the secrets of the links that unsubscribe."""
    try:
        offer = settings.one_click
    except ConfigError as error:
        advice = "set it: the API and workers do not start without it"
        return Finding("unsubscribe", Level.FAIL, str(error), advice)
    if offer is None:
        return Finding(
            "unsubscribe", Level.OK, "no template can offer it: unsubscribe.url is not set"
        )
    advice = "an https request to it must reach the API: see docs/how-to/offer-unsubscribe.md"
    return Finding("unsubscribe", Level.OK, f"links begin with {offer.url}{PATH}", advice)


async def of_tracing(settings: Settings) -> Finding:
    """Check that the collector takes spans: it is asked with none, and not waited for long."""
    endpoint = settings.tracing.target
    if endpoint is None:
        return Finding("tracing", Level.OK, "off: tracing.enabled is not set")
    try:
        with needing_extra("Tracing needs", "otel"):
            from carteiro.observability.otlp import (  # noqa: PLC0415 - an extra
                takes_traces,
                target_of,
            )
        place = target_of(endpoint)
        if await asyncio.to_thread(takes_traces, endpoint):
            return Finding("tracing", Level.OK, f"{place} takes spans")
    except ConfigError as error:
        return Finding("tracing", Level.FAIL, str(error), "set it: no process starts without it")
    advice = "start the collector, or correct tracing.endpoint; mail is sent all the same"
    return Finding("tracing", Level.WARN, f"{place} does not take spans: they are lost", advice)


def of_routes(
    settings: Settings, tenants: Collection[str], types: Collection[str]
) -> Iterator[Finding]:
    """Warn about routes of unknown tenants or types: the name is probably mistyped."""
    lost = [
        *_lost("tenant_routes", settings.tenant_routes, tenants, "no such tenant"),
        *_lost("type_routes", settings.type_routes, types, "no tenant has a template of this type"),
    ]
    yield from lost or [Finding("routes", Level.OK, "all belong to an existing tenant or type")]


def _lost(table: str, named: Iterable[str], known: Collection[str], told: str) -> Iterator[Finding]:
    for name in named:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), n=1)
            advice = f"did you mean {near[0]}?" if near else "correct the name, or remove the route"
            yield Finding("routes", Level.WARN, f"{table}.{name}: {told}", advice)


async def of_senders(
    settings: Settings, tenants: Sequence[Tenant], backend: Backend
) -> list[Finding]:
    """Warn about tenants without sender domains or any sender, and about a default From that another tenant claims."""
    found = []
    for tenant in tenants if settings.has_network_provider else ():
        if not tenant.from_domains and not settings.default_from_only:
            told = f"tenant {tenant.id!r} may send from any unclaimed domain"
            advice = f"carteiro tenant set {tenant.id} --from-domain DOMAIN"
            found.append(Finding("senders", Level.WARN, told, advice))
        elif not tenant.from_domains and not tenant.default_from:
            found += _without_sender(settings, tenant)
    owners = await DomainCache(backend.tenants).owners(
        [asked_sender(each, None) for each in tenants]
    )
    for tenant in tenants:
        owner = owners[asked_sender(tenant, None)]
        if owner not in {None, tenant.id}:
            told = f"tenant {tenant.id!r} cannot send: {owner!r} has claimed the domain of its default From"
            advice = f"carteiro tenant set {tenant.id} --from ADDRESS"
            found.append(Finding("senders", Level.WARN, told, advice))
    return found or [Finding("senders", Level.OK, "no tenant sends from a domain of another")]


def _without_sender(settings: Settings, tenant: Tenant) -> Iterator[Finding]:
    """Warn if a provider has no default From for a tenant that has none, and may use no other."""
    types = {name.partition(":")[0] for name in routes_of(settings).of(tenant.id, None)}
    for type_ in sorted(types):
        if getattr(getattr(settings, type_, None), "default_from", None) == "":
            told = f"tenant {tenant.id!r} has no sender address for {type_}: its mail fails"
            advice = f"carteiro tenant set {tenant.id} --from ADDRESS, or set {type_}.default_from"
            yield Finding("senders", Level.WARN, told, advice)


def of_presets(settings: Settings, tenants: Sequence[Tenant]) -> Iterator[Finding]:
    """Warn about presets that the settings lack: such a tenant is retried with the default policy."""
    lost = [
        Finding(
            "presets",
            Level.WARN,
            f"tenant {tenant.id!r} names the retry preset {tenant.retry_preset!r}, which does not exist",
            f"add it to [retry.presets], or carteiro tenant set {tenant.id} --retry-preset NAME",
        )
        for tenant in tenants
        if tenant.retry_preset is not None and tenant.retry_preset not in settings.presets
    ]
    yield from lost or [Finding("presets", Level.OK, "all presets named by tenants exist")]


async def of_overrides(settings: Settings, backend: Backend) -> Finding:
    """Report fairness settings that were overridden at run time."""
    fairness, is_override = await backend.tenants.fairness()
    if not is_override:
        return Finding("overrides", Level.OK, "none at run time")
    configured = asdict(settings.fairness.as_value())
    changed = [
        f"{name} = {each}" for name, each in asdict(fairness).items() if each != configured[name]
    ]
    told = f"fairness was changed at run time: {', '.join(changed) or 'to the configured values'}"
    return Finding(
        "overrides", Level.OK, told, "carteiro fairness set --reset restores the settings"
    )


async def of_templates(
    settings: Settings, tenants: Sequence[Tenant], backend: Backend
) -> tuple[list[Finding], set[str]]:
    """Check that all templates can be rendered and sent; return also the types in use."""
    findings, types = [], set()
    offer = None
    with suppress(ConfigError):  # reported by `of_unsubscribe`
        offer = settings.one_click
    for tenant in tenants:
        for listed in await backend.templates.list(tenant.id):
            types.add(listed.type)
            template = await backend.templates.find(tenant.id, listed.type)
            for fault in (
                []
                if template is None
                else faults_of(template, presets=settings.presets, offer=offer)
            ):
                told = f"{listed.type!r} of tenant {tenant.id!r}: {fault.field} {fault.message}"
                advice = f"carteiro template put {listed.type} --tenant {tenant.id}"
                findings.append(Finding("templates", Level.WARN, told, advice))
    return findings or [Finding("templates", Level.OK, "all can be rendered and sent")], types

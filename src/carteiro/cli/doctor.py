"""``carteiro doctor``: whether this installation is sound."""

import asyncio
from collections.abc import Iterator, Sequence

import typer

from carteiro.app import email_kind, examine_store, open_backend
from carteiro.checkup import Finding, Level
from carteiro.cli.desk import refuse_memory, told
from carteiro.cli.documents import document_of
from carteiro.cli.exit_codes import ExitCode
from carteiro.cli.options import AsJson, ConfigFile, StoreUrl
from carteiro.cli.paging import pages
from carteiro.cli.printing import Column, Printer
from carteiro.config import Settings, load
from carteiro.errors import CarteiroError
from carteiro.model import Tenant
from carteiro.ports import Backend
from carteiro.rendering import faults_of

_COLUMNS: tuple[Column[Finding], ...] = (
    Column("level", lambda row: row.level.upper(), is_whole=True),
    Column("check", lambda row: row.check, is_whole=True),
    Column("found", lambda row: row.told),
    Column("what to do", lambda row: row.advice),
)


@told
def doctor(*, config: ConfigFile = None, store: StoreUrl = None, as_json: AsJson = False) -> None:
    """Look whether store, disk, clock, templates, tenants and provider are sound; fails if one is not."""
    settings = load(file=config, overrides={"store": store})
    refuse_memory(settings)
    findings = asyncio.run(_examined(settings))
    Printer(as_json=as_json).rows(findings, _COLUMNS, document_of)
    if any(each.level is Level.FAIL for each in findings):
        raise typer.Exit(ExitCode.FAILED)


async def _examined(settings: Settings) -> list[Finding]:
    findings = await examine_store(settings)
    failed = {each.check for each in findings if each.level is Level.FAIL}
    if failed - {"disk"}:
        return findings  # opening would migrate what is old, and make what is missing
    async with open_backend(settings, governs=False) as backend:
        provider, is_network = await _provider(settings, backend)
        tenants = await _all_tenants(backend)
        findings += [provider, *_senders(tenants, is_network=is_network)]
        findings += await _templates(tenants, backend)
    return findings


async def _provider(settings: Settings, backend: Backend) -> tuple[Finding, bool]:
    try:
        kind, is_network = email_kind(settings, backend)
    except CarteiroError as error:
        return Finding("provider", Level.FAIL, str(error)), False
    fault = None if kind.check is None else await kind.check()
    if kind.close is not None:
        await kind.close()
    if fault is not None:
        advice = "mail waits and is tried again; look at the provider and its settings"
        return Finding("provider", Level.WARN, f"{settings.provider}: {fault}", advice), is_network
    return Finding("provider", Level.OK, f"{settings.provider} can be used"), is_network


async def _all_tenants(backend: Backend) -> list[Tenant]:
    asked = pages(lambda cursor, size: backend.tenants.list(cursor=cursor, limit=size), limit=0)
    return [tenant async for page, _ in asked for tenant in page]


def _senders(tenants: Sequence[Tenant], *, is_network: bool) -> Iterator[Finding]:
    """Whoever may send as anybody will be refused, or believed."""
    open_ones = [tenant for tenant in tenants if not tenant.from_domains]
    if not is_network or not open_ones:
        yield Finding("senders", Level.OK, "nobody sends as a domain that is not theirs")
        return
    for tenant in open_ones:
        told = f"tenant {tenant.id!r} may send as any domain"
        advice = f"carteiro tenant set {tenant.id} --from-domain DOMAIN"
        yield Finding("senders", Level.WARN, told, advice)


async def _templates(tenants: Sequence[Tenant], backend: Backend) -> list[Finding]:
    findings = []
    for tenant in tenants:
        for listed in await backend.templates.list(tenant.id):
            template = await backend.templates.find(tenant.id, listed.type)
            for fault in [] if template is None else faults_of(template):
                told = f"{listed.type!r} of tenant {tenant.id!r}: {fault.field} {fault.message}"
                advice = f"carteiro template put {listed.type} --tenant {tenant.id}"
                findings.append(Finding("templates", Level.WARN, told, advice))
    return findings or [Finding("templates", Level.OK, "all can be rendered")]

"""``carteiro doctor``: checks of this installation."""

import asyncio
from collections.abc import Awaitable

import typer

from carteiro.cli.desk import Common, grouped
from carteiro.cli.documents import document_of
from carteiro.cli.exit_codes import ExitCode
from carteiro.cli.paging import pages
from carteiro.cli.printing import Column
from carteiro.cli.tickets.doctor import examine_lane, is_lane_only
from carteiro.config import Settings
from carteiro.doctor import installation
from carteiro.errors import ConfigError
from carteiro.model.checkup import Finding, Level
from carteiro.ports import Backend
from carteiro.providers.email_kind import look_at_providers
from carteiro.stores.open import examine_queue, examine_store, open_backend

_COLUMNS: tuple[Column[Finding], ...] = (
    Column("level", lambda row: row.level.upper(), is_whole=True),
    Column("check", lambda row: row.check, is_whole=True),
    Column("found", lambda row: row.told),
    Column("what to do", lambda row: row.advice),
)

_BESIDE_THE_STORE = ("disk", "queue")  # checks that do not show whether the ledger is readable


def _not_looked_at(what: str) -> Finding:
    told = f"routes, senders and templates cannot be checked without the {what}"
    return Finding("tenants", Level.WARN, told, f"repair the {what} first, then run doctor again")


@grouped
def doctor(*, common: Common) -> None:
    """Check store, disk, clock, providers, feedback, routes and templates; exits non-zero on a failure.

    With ticket settings, also check Kafka, Redis, MongoDB and the topics; without any other settings, only these.
    """
    findings = asyncio.run(_examined(common.shared_settings()))
    common.out.rows(findings, _COLUMNS, document_of)
    if any(each.level is Level.FAIL for each in findings):
        raise typer.Exit(ExitCode.FAILED)


async def _examined(settings: Settings) -> list[Finding]:
    lane = await examine_lane(settings)
    if not (lane and is_lane_only(settings)):
        return [*await _post(settings), *lane]
    return [*lane, await installation.of_tracing(settings)] if settings.tracing.enabled else lane


async def _post(settings: Settings) -> list[Finding]:
    """E-mail and tasks: store, providers, tenants."""
    looked = await look_at_providers(settings)  # without the store: it may be what is not sound
    around = [
        *installation.of_providers(looked),
        *installation.of_feedback(settings),
        installation.of_unsubscribe(settings),
        await installation.of_tracing(settings),
    ]
    findings = await _checked("store", examine_store(settings), "install it, or use another store")
    advice = "correct the setting queue, or install the missing driver"
    findings += await _checked("queue", examine_queue(settings), advice)
    failed = {each.check for each in findings if each.level is Level.FAIL}
    if any(not check.startswith(_BESIDE_THE_STORE) for check in failed):
        # Opening would migrate an old store, and create a missing one.
        return [*findings, *around, _not_looked_at("store")]
    try:
        # The ledger is readable even if the queue is down.
        async with open_backend(settings, governs=False) as backend:
            inside = await _inside(settings, backend)
    except ConfigError:  # reported above: the queue URL is not valid
        return [*findings, *around, _not_looked_at("queue")]
    return [*findings, *around, *inside]


async def _checked(name: str, looked: Awaitable[list[Finding]], advice: str) -> list[Finding]:
    try:
        return await looked
    except ConfigError as error:  # such as a driver that is not installed
        return [Finding(name, Level.FAIL, str(error), advice)]


async def _inside(settings: Settings, backend: Backend) -> list[Finding]:
    asked = pages(backend.tenants.list, limit=0)
    tenants = [tenant async for page, _ in asked for tenant in page]
    templates, types = await installation.of_templates(settings, tenants, backend)
    names = [tenant.id for tenant in tenants]
    return [
        *await installation.of_choice(settings, backend.marks),
        *installation.of_routes(settings, names, types),
        *await installation.of_senders(settings, tenants, backend),
        *installation.of_presets(settings, tenants),
        *templates,
        await installation.of_overrides(settings, backend),
    ]

"""``carteiro tenant``: tenants, their limits and their state."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

from carteiro.cli.desk import Desk, DeskCommands, confirm
from carteiro.cli.documents import document_of
from carteiro.cli.exit_codes import NotNow, WrongUse
from carteiro.cli.faults import by_option, option_of
from carteiro.cli.options import Limit, OfTenant, RetryPreset, TenantArgument, Yes
from carteiro.cli.paging import erased_in_pages, print_pages
from carteiro.cli.printing import Column
from carteiro.errors import TierUnknown
from carteiro.model import EMAIL, ApiLimits, KindName, Standing, Tenant, TenantId
from carteiro.policy.tenancy import judge_new_tenant, judge_tenant
from carteiro.runtime.domain_cache import refuse_others_sender

app = DeskCommands("Show and change tenants.")

_COLUMNS: tuple[Column[Tenant], ...] = (
    Column("tenant", lambda row: row.id, is_whole=True),
    Column("name", lambda row: row.name),
    Column("tier", lambda row: row.tier),
    Column("weight", lambda row: row.weight),
    Column("cap", lambda row: row.cap),
    Column("rate/s", lambda row: row.rate_per_second),
    Column("paused", lambda row: row.paused),
    Column("disabled", lambda row: row.disabled),
)
_STANDINGS: tuple[Column[Standing], ...] = (
    Column("tenant", lambda row: row.tenant, is_whole=True),
    Column("waiting", lambda row: row.waiting),
    Column("in flight", lambda row: row.in_flight),
    Column("processed", lambda row: row.total_processed),
    Column("last processed", lambda row: row.last_processed_at, is_whole=True),
    Column("rounds without", lambda row: row.rounds_without_processing),
    Column("priority", lambda row: row.current_priority),
    Column("jobs in turn", lambda row: row.consecutive_batch_count),
)


class Clearable(StrEnum):
    """Fields of a tenant that can be reset to their defaults."""

    TIER = "tier"
    WEIGHT = "weight"
    CAP = "cap"
    RATE = "rate"
    FROM = "from"
    FROM_DOMAINS = "from-domains"
    NETWORKS = "networks"
    LIMITS = "limits"
    RETRY_PRESET = "retry-preset"
    CONTACT = "contact"


_FIELDS = {"rate": "rate_per_second", "from": "default_from", "networks": "allowed_networks"}


@dataclass(frozen=True)
class Fields:
    """The changes of a tenant; None keeps the value."""

    name: Annotated[str | None, typer.Option(help="Display name.")] = None
    tier: Annotated[str | None, typer.Option(help="Tier, which sets its weight.")] = None
    weight: Annotated[
        float | None, typer.Option(help="Weight of its share (default: its tier's).")
    ] = None
    cap: Annotated[int | None, typer.Option(help="Concurrency limit, in messages in flight.")] = (
        None
    )
    rate: Annotated[float | None, typer.Option(help="Rate limit, in messages a second.")] = None
    sender: Annotated[str | None, typer.Option("--from", help="Sender of e-mails without one.")] = (
        None
    )
    from_domain: Annotated[
        list[str] | None, typer.Option(help="Allowed sender domain; repeatable.")
    ] = None
    network: Annotated[
        list[str] | None, typer.Option(help="Network from which its keys are accepted; repeatable.")
    ] = None
    per_minute: Annotated[
        int | None, typer.Option(help="Rate limit of messages submitted over HTTP, per minute.")
    ] = None
    per_hour: Annotated[int | None, typer.Option(help="The same, per hour.")] = None
    per_day: Annotated[int | None, typer.Option(help="The same, per day.")] = None
    retry_preset: RetryPreset = None
    external_id_is_key: Annotated[
        bool | None, typer.Option(help="Treat externalId as an idempotency key.")
    ] = None
    contact: Annotated[str | None, typer.Option(help="Address for notices about the tenant.")] = (
        None
    )
    automatic_redrive: Annotated[
        bool | None,
        typer.Option(help="Redrive its dead letters automatically after an outage."),
    ] = None

    def changes_of(self, tenant: Tenant) -> dict[str, Any]:
        """The changes, as fields of a tenant."""
        same = ("name", "tier", "weight", "cap", "retry_preset", "external_id_is_key", "contact")
        given = {name: getattr(self, name) for name in (*same, "automatic_redrive")} | {
            "rate_per_second": self.rate,
            "default_from": self.sender,
            "from_domains": self.from_domain and tuple(self.from_domain),
            "allowed_networks": self.network and tuple(self.network),
            "limits": self._limits_of(tenant),
        }
        return {field: each for field, each in given.items() if each is not None}

    def _limits_of(self, tenant: Tenant) -> ApiLimits | None:
        periods = ("per_minute", "per_hour", "per_day")
        given = {name: getattr(self, name) for name in periods}
        named = {name: each for name, each in given.items() if each is not None}
        return replace(tenant.limits or ApiLimits(), **named) if named else None


# --- looking ----------------------------------------------------------------------------------


@app.at_a_desk()
async def ls(desk: Desk, *, limit: Limit = 100) -> None:
    """List tenants, by name."""
    listed = desk.backend.tenants.list
    await print_pages(desk.out, listed, _COLUMNS, document_of, what="tenants", limit=limit)


@app.at_a_desk()
async def show(desk: Desk, tenant: TenantArgument) -> None:
    """Show one tenant: its limits, its message counts and its state."""
    found = await desk.known_tenant(tenant)
    states = dict(await desk.backend.reading.states(tenant=found.id))
    standings = [
        each for each in await desk.backend.tenants.standings(EMAIL) if each.tenant == found.id
    ]
    document = document_of(found, messages=states, standings=standings)
    desk.out.thing(document, _facts(found) | {f"messages {name}": n for name, n in states.items()})
    desk.out.beside("Standing", standings, _STANDINGS)


@app.at_a_desk()
async def standing(
    desk: Desk,
    *,
    tenant: OfTenant = None,
    kind: Annotated[str, typer.Option(help="Kind of job.")] = EMAIL,
) -> None:
    """Show the turns of tenants, least served first."""
    restricted = await desk.tenant_asked_for(tenant)
    standings = await desk.backend.tenants.standings(KindName(kind))
    shown = [each for each in standings if restricted is None or each.tenant == restricted]
    desk.out.rows(shown, _STANDINGS, document_of, what="tenants with jobs")


def _facts(tenant: Tenant) -> dict[str, object]:
    limits = tenant.limits
    return {column.heading: column.of(tenant) for column in _COLUMNS} | {
        "from": tenant.default_from,
        "from domains": tenant.from_domains or None,
        "networks": tenant.allowed_networks or None,
        "limits": limits and f"{limits.per_minute}/min {limits.per_hour}/h {limits.per_day}/day",
        "retry preset": tenant.retry_preset,
        "external id is key": tenant.external_id_is_key,
        "contact": tenant.contact,
        "automatic redrive": tenant.automatic_redrive,
    }


# --- changing ---------------------------------------------------------------------------------


@app.at_a_desk(makes_store=True)
async def add(desk: Desk, tenant: TenantArgument, *, fields: Fields) -> None:
    """Add a tenant; then create its key with carteiro key add.

    Its name is part of URLs of the API: it cannot contain a slash (/).
    """
    [known] = await desk.backend.tenants.find([TenantId(tenant)])
    if known is not None:
        raise NotNow(f"there is a tenant {tenant!r} already: carteiro tenant set changes it")
    new = Tenant(TenantId(tenant))
    made = replace(new, **fields.changes_of(new))
    if faults := judge_new_tenant(made, presets=desk.settings.presets):
        raise WrongUse(by_option(faults))
    await _write(desk, None, made, f"Added {tenant}.")


@app.at_a_desk("set")
async def set_(
    desk: Desk,
    tenant: TenantArgument,
    *,
    clear: Annotated[
        list[Clearable] | None, typer.Option(help="Field to reset to its default; repeatable.")
    ] = None,
    fields: Fields,
) -> None:
    """Change a tenant; other fields stay. The change applies to waiting messages at once."""
    known = await desk.known_tenant(tenant)
    names = [_FIELDS.get(each, each.replace("-", "_")) for each in clear or ()]
    cleared = {name: getattr(Tenant(known.id), name) for name in names}
    changes = fields.changes_of(known)
    if not changes and not cleared:
        raise WrongUse("nothing to change: carteiro tenant set --help lists what can be set")
    if both := cleared.keys() & changes.keys():
        raise WrongUse(
            f"{', '.join(sorted(map(option_of, both)))}: cannot be set and cleared in one command"
        )

    def changed(stored: Tenant) -> Tenant:
        base = replace(stored, **cleared)
        made = replace(base, **fields.changes_of(base))
        if faults := judge_tenant(made, presets=desk.settings.presets):
            raise WrongUse(by_option(faults))
        return made

    await _write(desk, known, changed(known), f"Changed {tenant}.", changed)


async def _write(
    desk: Desk,
    before: Tenant | None,
    after: Tenant,
    sentence: str,
    changed: Callable[[Tenant], Tenant] | None = None,
) -> None:
    """Add the tenant; with ``changed``, change what is stored by then, so that no other change is undone."""
    tenants = desk.backend.tenants
    await refuse_others_sender(tenants, before, after)

    async def write() -> Tenant:
        if changed is not None:
            return await desk.changed_tenant(after.id, changed)
        await tenants.define([after])
        return after

    try:
        written = await write()
    except TierUnknown as error:
        # No process has started with these settings yet; a tier that is known keeps its weight.
        weight = desk.settings.tiers.get(error.tier)
        if weight is None:
            raise
        await tenants.weigh_tier(error.tier, weight)
        written = await write()
    desk.out.answer(document_of(written), sentence)


def _switch(name: str, promise: str, **states: Any) -> None:  # noqa: ANN401 - fields of a tenant
    """One command that switches a tenant's state on or off."""

    async def switch(desk: Desk, tenant: TenantArgument) -> None:
        changed = await desk.changed_tenant(tenant, lambda stored: replace(stored, **states))
        state = "disabled" if changed.disabled else "paused" if changed.paused else "at work"
        desk.out.answer(document_of(changed), f"{tenant} is {state}.")

    switch.__doc__ = promise
    app.at_a_desk(name)(switch)


_switch(
    "disable",
    "Disable a tenant: its keys are refused, no message is accepted, waiting ones are held.",
    disabled=True,
)
_switch("enable", "Enable a disabled tenant.", disabled=False)
_switch("pause", "Pause a tenant: its messages are accepted, but wait.", paused=True)
_switch("resume", "Resume a paused tenant.", paused=False)


@app.at_a_desk()
async def erase(desk: Desk, tenant: TenantArgument, *, yes: Yes = False) -> None:
    """Permanently erase a tenant and all its data."""
    found = await desk.known_tenant(tenant)
    confirm(f"Permanently erase tenant {tenant!r} and all its messages?", yes=yes)
    messages, recipients = await erased_in_pages(partial(desk.backend.tenants.erase, found.id))
    document = {"companyId": tenant, "messages": messages, "recipients": recipients}
    sentence = f"Erased {tenant}: {messages} messages, {recipients} recipients."
    desk.out.answer(document, sentence)

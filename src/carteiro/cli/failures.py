"""``carteiro failures``: messages that fail alike."""

from functools import partial
from typing import Annotated, Any, TypeAlias

import typer

from carteiro.cli.desk import Desk, DeskCommands
from carteiro.cli.documents import document_of
from carteiro.cli.exit_codes import NotFound, NotNow
from carteiro.cli.histories import history_document, history_facts
from carteiro.cli.options import Limit, OfTenant
from carteiro.cli.paging import print_pages
from carteiro.cli.printing import Column
from carteiro.model import (
    FailureFilter,
    FailureGroup,
    GroupState,
    HourOfFailures,
    TenantFailures,
)
from carteiro.policy.advice import advice_on

app = DeskCommands("Show failures by cause, and set the state of a cause.")

GroupId: TypeAlias = Annotated[
    str, typer.Argument(metavar="GROUP", help="Id of a group: see carteiro failures ls.")
]

_COLUMNS: tuple[Column[FailureGroup], ...] = (
    Column("group", lambda row: row.id, is_whole=True),
    Column("state", lambda row: row.state, is_whole=True),
    Column("provider", lambda row: row.provider),
    Column("code", lambda row: row.code),
    Column("reason", lambda row: row.reason or row.error or row.rule),
    Column("attempts", lambda row: row.attempts),
    Column("deaths", lambda row: row.deaths),
    Column("since", lambda row: row.opened_at, is_whole=True),
    Column("last seen", lambda row: row.last_seen, is_whole=True),
)
_HOURS: tuple[Column[HourOfFailures], ...] = (
    Column("hour", lambda row: row.at, is_whole=True),
    Column("attempts", lambda row: row.attempts),
    Column("deaths", lambda row: row.deaths),
)
_TENANTS: tuple[Column[TenantFailures], ...] = (
    Column("tenant", lambda row: row.tenant or "(others)"),
    Column("attempts", lambda row: row.attempts),
    Column("deaths", lambda row: row.deaths),
)


@app.at_a_desk()
async def ls(
    desk: Desk,
    *,
    state: Annotated[
        GroupState | None, typer.Option(case_sensitive=False, help="State (default: any).")
    ] = None,
    provider: Annotated[str | None, typer.Option(help="Provider (default: any).")] = None,
    tenant: OfTenant = None,
    limit: Limit = 50,
) -> None:
    """List failure groups, most recently seen first; with --tenant, only the failures of that tenant."""
    wanted = FailureFilter(await desk.tenant_asked_for(tenant), state, provider)
    asked = partial(desk.backend.failures.list, wanted)
    await print_pages(desk.out, asked, _COLUMNS, _document, what="failure groups", limit=limit)


@app.at_a_desk()
async def show(desk: Desk, group: GroupId, *, tenant: OfTenant = None) -> None:
    """Show a failure group: counts by hour and tenant, results of retries, sample messages, and what to do."""
    restricted = await desk.tenant_asked_for(tenant)
    report = await desk.backend.failures.show(group, tenant=restricted)
    if report is None:
        raise _unknown(group)
    document = document_of(report, group=_document(report.group))
    facts = _facts(report.group) | {"messages": tuple(report.samples)}
    if restricted is None and desk.settings.retry.learn != "off":  # a history of all tenants
        for each in await desk.backend.failures.histories([group]):
            document["history"] = history_document(each.whole)
            facts |= history_facts(each.whole)
    desk.out.thing(document, facts)
    desk.out.beside("Hours", report.hours, _HOURS)
    desk.out.beside("Tenants", report.tenants, _TENANTS)


@app.at_a_desk()
async def ack(desk: Desk, group: GroupId) -> None:
    """Mark a group as being worked on; it stays acknowledged when it recurs."""
    await _move(desk, group, GroupState.ACKNOWLEDGED)


@app.at_a_desk()
async def resolve(desk: Desk, group: GroupId) -> None:
    """Mark the cause of a group as removed; the next failure opens the group again."""
    await _move(desk, group, GroupState.RESOLVED)


@app.at_a_desk()
async def ignore(desk: Desk, group: GroupId) -> None:
    """Mark a group as not worth work; it stays ignored when it recurs."""
    await _move(desk, group, GroupState.IGNORED)


async def _move(desk: Desk, group: str, state: GroupState) -> None:
    moved = await desk.backend.failures.move(group, state)
    if moved is None:
        raise _unknown(group)
    if moved.state is not state:
        raise NotNow(f"{moved.id} is {moved.state}: the next failure opens it again")
    desk.out.answer(_document(moved), f"{moved.id} is {moved.state}.")


def _unknown(group: str) -> NotFound:
    return NotFound(f"there is no failure group {group!r}: carteiro failures ls lists all")


def _document(group: FailureGroup) -> dict[str, Any]:
    advice = advice_on(group)
    return document_of(group, action=advice.action, runbook=advice.runbook)


def _facts(group: FailureGroup) -> dict[str, object]:
    advice = advice_on(group)
    return {
        "group": group.id,
        "state": group.state,
        "provider": group.provider,
        "rule": group.rule,
        "error": group.error,
        "reason": group.reason,
        "code": group.code,
        "category": group.category,
        "scope": group.scope,
        "attempts": group.attempts,
        "deaths": group.deaths,
        "first seen": group.first_seen,
        "since": group.opened_at,
        "last seen": group.last_seen,
        "resolved": group.resolved_at,
        "what to do": advice.action,
        "runbook": advice.runbook,
    }

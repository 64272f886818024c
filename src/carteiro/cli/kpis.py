"""``carteiro kpis``: key figures with their goals."""

from typing import Annotated

import typer

from carteiro.cli.desk import Desk, at_a_desk
from carteiro.cli.documents import document_of
from carteiro.cli.options import OfTenant
from carteiro.cli.printing import Column, note
from carteiro.model.figures import AttemptSuccess, Kpi
from carteiro.views.kpis import KpiReport, Part, Range, report


def _figure(row: Kpi) -> str:
    return "no data" if row.figure is None else _told(row.figure, row.unit)


def _told(figure: float, unit: str) -> str:
    return f"{100 * figure:.2f} %" if unit == "share" else f"{figure:.3f} s"


def _goal(row: Kpi) -> str:
    if row.goal is None:
        return ""
    return f"{'>' if row.goal_is == 'above' else '<'} {_told(row.goal, row.unit)}"


_KPIS: tuple[Column[Kpi], ...] = (
    Column("kpi", lambda row: row.name.replace("_", " "), is_whole=True),
    Column("figure", _figure, is_whole=True),
    Column("goal", _goal, is_whole=True),
    Column("met", lambda row: row.is_met),
    Column("of", lambda row: row.count),
)
_ATTEMPTS: tuple[Column[AttemptSuccess], ...] = (
    Column("attempt", lambda row: row.attempt),
    Column("made", lambda row: row.count),
    Column("sent", lambda row: row.sent),
    Column("success", lambda row: _told(row.share, "share"), is_whole=True),
)
_CODES: tuple[Column[tuple[str, int]], ...] = (
    Column("code", lambda row: row[0], is_whole=True),
    Column("failed", lambda row: row[1]),
)


def _part_columns(what: str) -> tuple[Column[Part], ...]:
    return (
        Column(what, lambda row: row.name, is_whole=True),
        Column("sent", lambda row: row.counts.sent),
        Column("retried", lambda row: row.counts.retried),
        Column("failed", lambda row: row.counts.failed),
    )


@at_a_desk
async def kpis(
    desk: Desk,
    *,
    tenant: OfTenant = None,
    range_: Annotated[
        Range, typer.Option("--range", help="Time before now that the figures are of.")
    ] = Range.DAY,
) -> None:
    """Show key figures with their goals: delivery, time to delivery, recovery, failures, attempts."""
    restricted = await desk.tenant_asked_for(tenant)
    found = await report(desk.backend.rollups, range_, restricted)
    desk.out.thing(document_of(found, companyId=restricted), document_of(found.counts))
    if all(each.figure is None for each in found.kpis):
        note(f"No message ended in the last {range_.value}: there is nothing to compute from.")
    _print(desk, found)


def _print(desk: Desk, found: KpiReport) -> None:
    desk.out.beside("KPIs", found.kpis, _KPIS)
    desk.out.beside("Attempts", found.attempts, _ATTEMPTS)
    desk.out.beside("Failed", list(found.failed_by_code.items()), _CODES)
    desk.out.beside("Providers", found.providers, _part_columns("provider"))
    desk.out.beside("Templates", found.templates, _part_columns("template"))

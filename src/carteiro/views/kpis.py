"""Key figures of a range of time, for the API and the command line."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum

from carteiro.model import TenantId, value
from carteiro.model.figures import AttemptSuccess, Figures, Kpi, Span
from carteiro.policy import kpis
from carteiro.policy.rollups import DELAYS
from carteiro.ports import Rollups


class Range(StrEnum):
    """The time before now that figures are of."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"


_SPANS: Mapping[Range, tuple[Span, timedelta]] = {
    Range.HOUR: ("minute", timedelta(hours=1)),
    Range.DAY: ("minute", timedelta(days=1)),
    Range.WEEK: ("hour", timedelta(days=7)),
    Range.MONTH: ("hour", timedelta(days=30)),
}


@value
class Counts:
    """The number of messages; ``retried`` counts each retry."""

    accepted: int
    sent: int
    retried: int
    failed: int
    cancelled: int
    redriven: int


@value
class DelayCount:
    """Messages that took less than this time from accept to sent, and not less than the bound before; None: longer."""

    below_ms: int | None
    count: int


@value
class Part:
    """The numbers of one provider, or of one template type."""

    name: str
    counts: Counts


@value
class KpiReport:
    """Key figures and the numbers behind them; ``failed_by_code`` of messages, ``errors_by_code`` of attempts."""

    range: Range
    kpis: list[Kpi]
    attempts: list[AttemptSuccess]
    counts: Counts
    delays: list[DelayCount]
    failed_by_code: dict[str, int]
    errors_by_code: dict[str, int]
    mean_wait_ms: int | None  # until the first attempt
    most_in_flight: int | None
    longest_queue_age_ms: int | None
    providers: list[Part]
    templates: list[Part]


async def report(rollups: Rollups, asked: Range, tenant: TenantId | None) -> KpiReport:
    """The figures of all tenants, with their providers; or of one, with its templates."""
    span, back = _SPANS[asked]
    figures = await rollups.total(span, back, tenant=tenant)
    providers = await rollups.split("provider", span, back) if tenant is None else {}
    templates = await rollups.split("template", span, back, tenant=tenant) if tenant else {}
    waits = kpis.count(figures, "waits")
    return KpiReport(
        asked,
        kpis.kpis(figures),
        kpis.by_attempt(figures),
        _counts(figures),
        [
            DelayCount(bound, number)
            for slot, bound in enumerate([*DELAYS, None])
            if (number := kpis.count(figures, f"delay.{slot}"))
        ],
        by_code(figures, "dead."),
        by_code(figures, "error."),
        figures["wait_ms"] // waits if waits else None,
        figures.get("max_in_flight"),
        figures.get("max_queue_age_ms"),
        _parts(providers),
        _parts(templates),
    )


def _counts(figures: Figures) -> Counts:
    return Counts(
        *(kpis.count(figures, name) for name in ("accepted", "sent", "retried", "failed")),
        *(kpis.count(figures, name) for name in ("cancelled", "redriven")),
    )


def by_code(figures: Figures, kind: str) -> dict[str, int]:
    """The numbers by code, the most frequent first; a code may have several categories."""
    sums: Figures = Counter()
    for name, number in figures.items():
        if name.startswith(kind):
            sums[name.split(".", 2)[-1]] += number  # after its category
    return dict(sorted((+sums).items(), key=lambda each: (-each[1], each[0])))


def _parts(figures: Mapping[str, Figures]) -> list[Part]:
    return [Part(name, _counts(each)) for name, each in sorted(figures.items())]

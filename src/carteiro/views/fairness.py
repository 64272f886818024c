"""The share of a tenant against its weight, for people: from figures, by minute or by hour."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from carteiro.model import TenantId, value
from carteiro.model.figures import ServedShare, Span
from carteiro.policy import kpis
from carteiro.policy.rollups import DELAYS
from carteiro.ports import Rollups
from carteiro.views.kpis import Range

# A week by the hour would read a row for each active tenant and hour: too many for a page.
RANGES: Mapping[Range, tuple[Span, timedelta]] = {
    Range.HOUR: ("minute", timedelta(minutes=1)),
    Range.DAY: ("hour", timedelta(hours=1)),
}
_BACK = {Range.HOUR: timedelta(hours=1), Range.DAY: timedelta(days=1)}


@value
class Slowest:
    """The slowest mail took less than this time from accept to sent; or more than it, if it is the longest known."""

    bound: timedelta
    is_longer: bool


@value
class FairnessReport:
    """The share of a tenant over time, of those minutes or hours in which any tenant was served.

    ``served``: by its start; ``share`` and ``fair_share`` of the whole range, None: nothing was served. ``jain``: the
    index of the latest minute or hour. ``mean_wait``: until the first attempt.
    """

    range: Range
    times: list[datetime]
    served: Mapping[datetime, ServedShare]
    weight: float
    share: float | None
    fair_share: float | None
    jain: float | None
    sent: int
    failed: int
    mean_wait: timedelta | None
    slowest: Slowest | None


async def fairness_report(
    rollups: Rollups, asked: Range, tenant: TenantId, *, weight: float, sees_others: bool
) -> FairnessReport:
    """The shares of a tenant with this weight; without others' figures if the viewer may not see them."""
    (span, step), back = RANGES[asked], _BACK[asked]
    found = await rollups.shares(span, back, tenant=tenant) if sees_others else []
    figures = await rollups.total(span, back, tenant=tenant)
    of_all = sum(each.of_all for each in found)
    waits = kpis.count(figures, "waits")
    return FairnessReport(
        asked,
        times=_starts(datetime.now(UTC), step, back),
        served={each.at: each for each in found},
        weight=weight,
        share=sum(each.served for each in found) / of_all if of_all else None,
        fair_share=(
            sum(each.fair_share(weight) * each.of_all for each in found) / of_all
            if of_all
            else None
        ),
        jain=found[-1].jain if found else None,
        sent=kpis.count(figures, "sent"),
        failed=kpis.count(figures, "failed"),
        mean_wait=timedelta(milliseconds=figures["wait_ms"] // waits) if waits else None,
        slowest=_slowest(figures),
    )


def _starts(now: datetime, step: timedelta, back: timedelta) -> list[datetime]:
    first = now - back
    start = first - (first - datetime.min.replace(tzinfo=UTC)) % step
    return [start + number * step for number in range(back // step + 1)]


def _slowest(figures: Mapping[str, int]) -> Slowest | None:
    """The bound of the last slot of delays that has messages."""
    slots = [slot for slot in range(len(DELAYS) + 1) if figures.get(f"delay.{slot}", 0) > 0]
    if not slots:
        return None
    last = slots[-1]
    bound = DELAYS[min(last, len(DELAYS) - 1)]
    return Slowest(timedelta(milliseconds=bound), is_longer=last == len(DELAYS))

"""The figures of the start page: one reading for all that look at the same range and tenant, at most seconds old."""

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from heapq import nlargest
from typing import Final, TypeAlias

from carteiro.errors import QueueAway
from carteiro.model import (
    EMAIL,
    FailureFilter,
    FailureGroup,
    ProviderRate,
    Standing,
    TenantId,
    value,
)
from carteiro.model.alerts import Alert, AlertState
from carteiro.model.figures import Figures, Kpi
from carteiro.policy import kpis
from carteiro.policy.rollups import add
from carteiro.ports import Backend
from carteiro.runtime.fresh import Fresh
from carteiro.views.kpis import SPANS, Range

# The time that a point of a chart is about: so that no chart has more than 150.
STEPS: Final[Mapping[Range, timedelta]] = {
    Range.HOUR: timedelta(minutes=1),
    Range.DAY: timedelta(minutes=10),
    Range.WEEK: timedelta(hours=2),
    Range.MONTH: timedelta(hours=8),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_KEPT = 100  # readings
_SLOW_S = 15.0
_SHOWN = 5
_GROUPS = 50  # the most recently seen ones, of which those with the most failures are shown

Asked: TypeAlias = tuple[Range, TenantId | None]


@value
class Point:
    """One step of the charts; delays in seconds, None: nothing was sent."""

    at: datetime
    accepted: int
    sent: int
    retried: int
    failed: int
    p50: float | None
    p95: float | None
    in_flight: int
    queue_age_s: float


@value
class GroupNow:
    """A failure group, and the number of its failures in the last 48 hours."""

    group: FailureGroup
    failures: int


@value
class Foremost:
    """The tenants with the most waiting, and the groups with the most failures: read less often.

    ``waiting`` None: the queue, which counts them, is unreachable.
    """

    waiting: Sequence[Standing] | None
    groups: Sequence[GroupNow]


@value
class Overview:
    """Everything that the page shows; of a tenant without what is about all of them."""

    range: Range
    tenant: TenantId | None
    points: Sequence[Point]
    kpis: Sequence[Kpi]
    alerts: Sequence[Alert]
    providers: Sequence[ProviderRate]
    foremost: Foremost

    @property
    def is_quiet(self) -> bool:
        """True if nothing happened in the range."""
        return not any(each.accepted or each.sent or each.failed for each in self.points)


class Overviews:
    """Reads them; from figures that upkeep has added up, so that nothing in the queue is touched."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._fresh: Fresh[Asked, Overview] = Fresh(self._read, most=_MOST_KEPT)
        self._foremost: dict[TenantId | None, tuple[float, Foremost]] = {}
        self._lock = asyncio.Lock()  # concurrent viewers share one reading

    async def of(self, asked: Range, tenant: TenantId | None) -> Overview:
        """The overview of a range, of all tenants or of one."""
        async with self._lock:
            [found] = (await self._fresh.find([(asked, tenant)])).values()
        return found

    async def _read(self, names: Collection[Asked]) -> Mapping[Asked, Overview]:
        return {each: await self._one(*each) for each in names}

    async def _one(self, asked: Range, tenant: TenantId | None) -> Overview:
        ports, (span, back) = self._backend, SPANS[asked]
        line = await ports.rollups.line(span, back, tenant=tenant)
        points, whole = await asyncio.to_thread(_drawn, line, asked)
        alerts = (await ports.alerts.list(tenant=tenant, limit=4 * _SHOWN)).rows
        return Overview(
            asked,
            tenant,
            points,
            kpis.kpis(whole),
            [each for each in alerts if each.state is not AlertState.PENDING][:_SHOWN],
            [] if tenant else await ports.rates.show(),
            await self._foremost_of(tenant),
        )

    async def _foremost_of(self, tenant: TenantId | None) -> Foremost:
        now = time.monotonic()
        until, known = self._foremost.get(tenant, (0.0, None))
        if known is None or now >= until:
            if len(self._foremost) >= _MOST_KEPT:
                self._foremost.clear()
            known = Foremost([] if tenant else await self._waiting(), await self._groups(tenant))
            self._foremost[tenant] = now + _SLOW_S, known
        return known

    async def _waiting(self) -> Sequence[Standing] | None:
        try:
            standings = await self._backend.tenants.standings(EMAIL)
        except QueueAway:
            return None
        most = nlargest(_SHOWN, standings, key=lambda each: each.waiting)
        return [each for each in most if each.waiting]

    async def _groups(self, tenant: TenantId | None) -> Sequence[GroupNow]:
        failures = self._backend.failures
        groups = (await failures.list(FailureFilter(tenant), limit=_GROUPS)).rows
        hours = await failures.hours([each.id for each in groups], tenant=tenant)
        now = [
            GroupNow(each, sum(max(h.attempts, h.deaths) for h in hours.get(each.id, ())))
            for each in groups
        ]
        most = nlargest(_SHOWN, now, key=lambda each: each.failures)
        return [each for each in most if each.failures]


def _drawn(line: Mapping[datetime, Figures], asked: Range) -> tuple[Sequence[Point], Figures]:
    """The points of the charts, and the sum of all of them."""
    step, (_, back) = STEPS[asked], SPANS[asked]
    last = (datetime.now(UTC) - _EPOCH) // step
    sums: dict[int, Figures] = {at: Counter() for at in range(last - back // step + 1, last + 1)}
    whole: Figures = Counter()
    for at, figures in line.items():
        add(whole, figures)
        place = (at - _EPOCH) // step
        if place in sums:
            add(sums[place], figures)
    return [_point(_EPOCH + at * step, each) for at, each in sums.items()], whole


def _point(at: datetime, figures: Figures) -> Point:
    return Point(
        at,
        accepted=kpis.count(figures, "accepted"),
        sent=kpis.count(figures, "sent"),
        retried=kpis.count(figures, "retried"),
        failed=kpis.count(figures, "failed"),
        p50=kpis.delay_within(figures, 0.5),
        p95=kpis.delay_within(figures, 0.95),
        in_flight=figures["max_in_flight"],
        queue_age_s=figures["max_queue_age_ms"] / 1000,
    )

"""Gauges of the store: read on a scrape, cached for seconds, absent if the store does not answer."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from heapq import nlargest
from time import monotonic
from typing import TypeAlias

from carteiro.model import EMAIL, Depth, Standing, TenantId, value
from carteiro.model.figures import TemplateResult
from carteiro.observability import log
from carteiro.observability.metrics.definitions import OTHER
from carteiro.policy.alert_values import HOUR, RECENT, delivery_time
from carteiro.ports import Backend
from carteiro.ports.queue import QueueMemory

Moment: TypeAlias = Callable[[], datetime]

_KEPT = timedelta(seconds=5)  # scrapes must not load the store more often
_PATIENCE_S = 3.0  # less than the timeout of a scrape
_MOST_KINDS = 50


@value
class Reading:
    """The figures of a store."""

    depths: list[Depth]
    dead: int
    dead_oldest: datetime | None
    dead_by_tenant: Mapping[TenantId, int]
    standings: list[Standing]
    last_seen: datetime | None  # the last maintenance by any process
    queue_memory: QueueMemory | None  # None: the store holds the jobs itself
    pending: int | None  # None: applications have no access by SQL
    delivery_p50: float | None  # None: nothing was sent
    delivery_p95: float | None
    templates: list[TemplateResult]
    at: datetime


class Gauges:
    """Reads the store, at most once in a few seconds."""

    def __init__(
        self, backend: Backend, *, top: int, least: int, now: Moment = lambda: datetime.now(UTC)
    ) -> None:
        self._backend = backend
        self._top = top
        self._least = least
        self._now = now
        self._lock = asyncio.Lock()  # concurrent callers share one reading
        self._last: Reading | None = None
        self._good_until = -1.0

    async def read(self) -> Reading | None:
        """Return figures at most seconds old; None if the store did not answer."""
        async with self._lock:
            if monotonic() >= self._good_until:
                self._last = None
                try:
                    async with asyncio.timeout(_PATIENCE_S):
                        self._last = await self._read()
                except Exception as error:  # noqa: BLE001 - a scrape must report an unreachable store, not fail with it
                    log.store_failed("metrics", error, wait=_KEPT)
                self._good_until = monotonic() + _KEPT.total_seconds()
            return self._last

    async def _read(self) -> Reading:
        ports = self._backend
        depths = sorted(await ports.reading.depths(), key=lambda depth: -depth.unfinished)
        recent = await ports.rollups.minutes(RECENT)
        dead, most = await ports.dead_letters.sizes(top=max(1, self._top))
        return Reading(
            depths=depths[:_MOST_KINDS],
            dead=dead,
            dead_oldest=await ports.dead_letters.oldest() if dead else None,
            dead_by_tenant=dict(most),
            standings=_foremost(await ports.tenants.standings(EMAIL), self._top),
            last_seen=await ports.upkeep.last_seen(),
            queue_memory=None if ports.queue is None else await ports.queue.look(),
            pending=None if ports.table_queue is None else await ports.table_queue.pending(),
            delivery_p50=delivery_time(max(recent), recent, 0.5) if recent else None,
            delivery_p95=delivery_time(max(recent), recent) if recent else None,
            templates=await ports.rollups.worst(HOUR, least=self._least, limit=self._top),
            at=self._now(),
        )


def _foremost(standings: Sequence[Standing], top: int) -> list[Standing]:
    """Return the tenants with most jobs, then one named `OTHER` with the worst figures of the rest."""
    # A tenant of that name is one of the rest.
    known = [each for each in standings if each.tenant != OTHER]
    named = nlargest(top, known, key=lambda each: each.total_processed)
    names = {each.tenant for each in named}
    rest = [each for each in standings if each.tenant not in names]
    return [*named, _worst(rest)] if rest else named


def _worst(rest: Sequence[Standing]) -> Standing:
    return replace(
        rest[0],
        tenant=TenantId(OTHER),
        current_priority=min(each.current_priority for each in rest),  # 1 is the most urgent
        consecutive_batch_count=max(each.consecutive_batch_count for each in rest),
        rounds_without_processing=max(each.rounds_without_processing for each in rest),
    )

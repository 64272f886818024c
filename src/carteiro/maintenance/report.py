"""Reports to the store: open circuits, and a queue on a server of its own, as this process sees them.

Written when it changes, and renewed once in a while; a process with nothing to report writes nothing. The report is
withdrawn when the process stops; after a crash it ends by itself.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from uuid_utils import uuid7

from carteiro.errors import StoreError, StoreUnavailable
from carteiro.model import ProviderStanding
from carteiro.model.reports import QueueReport, Report
from carteiro.observability import log
from carteiro.policy.alert_values import REFUSALS
from carteiro.policy.breaker import LONGEST_OPEN
from carteiro.ports.queue import QueueMemory, QueueWatch
from carteiro.ports.reports import Reports

_BEAT = timedelta(minutes=1)
_STAY = 3 * _BEAT
_GOODBYE_S = 5.0
_STEP = 0.01  # of the memory: a smaller change is not reported before the next beat


async def report(
    reports: Reports,
    circuits: Callable[[], Sequence[ProviderStanding]],
    queue: QueueWatch | None,
    *,
    every: timedelta = timedelta(seconds=10),
) -> None:
    """Report until cancelled; the report ends with the process."""
    reporter = Reporter(reports, circuits, queue)
    try:
        while True:
            try:
                await reporter.round(datetime.now(UTC))
            except Exception as error:  # noqa: BLE001 - the next round may succeed, and a loop must not end unnoticed
                log.upkeep_failed("report", error)
            await asyncio.sleep(every.total_seconds())
    finally:
        with suppress(StoreError, TimeoutError):  # then the report ends by itself
            async with asyncio.timeout(_GOODBYE_S):
                await reporter.withdraw()


class Reporter:
    """Reports of this process."""

    def __init__(
        self,
        reports: Reports,
        circuits: Callable[[], Sequence[ProviderStanding]],
        queue: QueueWatch | None,
    ) -> None:
        self._reports = reports
        self._circuits = circuits
        self._queue = queue
        self._looks: deque[tuple[datetime, QueueMemory]] = deque()
        self._away_since: datetime | None = None
        self._process = str(uuid7())
        self._last = Report(self._process, {})
        self._reported_at: datetime | None = None  # None: the store has no report of this process

    async def round(self, now: datetime) -> None:
        """Look, and write what has changed."""
        told = _circuits_of(self._process, self._circuits(), await self._look(now))
        if not told.circuits and told.queue is None:
            await self.withdraw()
            return
        # Also if the clock was set: the end of the last report is by the clock before.
        is_due = self._reported_at is None or abs(now - self._reported_at) >= _BEAT
        if is_due or _differs(told, self._last):
            await self._reports.put(told, stay=_STAY)
            self._reported_at, self._last = now, told

    async def withdraw(self) -> None:
        """Delete the report of this process, if there is one."""
        if self._reported_at is not None:
            await self._reports.withdraw(self._process)
            self._reported_at, self._last = None, Report(self._process, {})

    async def _look(self, now: datetime) -> QueueReport | None:
        if self._queue is None:
            return None
        try:
            memory = await self._queue.look()
        except StoreUnavailable:
            self._away_since = self._away_since or now
            return replace(self._last.queue or QueueReport(), away_since=self._away_since)
        self._away_since = None
        if self._looks and (self._looks[-1][1].run != memory.run or self._looks[-1][0] > now):
            # What the last server refused does not hold any more; or the clock was set back.
            self._looks.clear()
        self._looks.append((now, memory))
        while len(self._looks) > 1 and self._looks[1][0] <= now - REFUSALS:
            self._looks.popleft()
        looks = [each for _, each in self._looks]
        return QueueReport(
            memory.used_bytes,
            memory.max_bytes,
            _growth([each.rejected for each in looks]),
            _growth([each.out_of_memory for each in looks]),
        )


def _circuits_of(
    process: str, standings: Sequence[ProviderStanding], queue: QueueReport | None
) -> Report:
    since, opened = (
        {
            each.provider: datetime.fromtimestamp(at, UTC)
            for each in standings
            if each.open_since is not None and (at := getattr(each, name)) is not None
        }
        for name in ("open_since", "trouble_at")
    )
    return Report(process, since, queue, opened)


def open_circuits(
    here: Sequence[ProviderStanding], reports: Iterable[Report], now: datetime
) -> set[str]:
    """The providers that a process does not call now; half-open ones do not count: an idle process keeps its own."""
    every = [_circuits_of("", here, None), *reports]
    opened = [pair for each in every for pair in each.opened.items()]
    return {provider for provider, at in opened if abs(now - at) <= LONGEST_OPEN}


def _growth(counts: Sequence[int]) -> int:
    """The growth of a counter that may be reset."""
    return sum(after - before if after >= before else after for before, after in pairwise(counts))


def _differs(one: Report, other: Report) -> bool:
    """True if it should be reported at once."""
    if (one.circuits, one.opened) != (other.circuits, other.opened) or (one.queue is None) is not (
        other.queue is None
    ):
        return True
    if one.queue is None or other.queue is None:
        return False
    moved = abs(one.queue.used_bytes - other.queue.used_bytes)
    is_about_the_same = replace(one.queue, used_bytes=0) == replace(other.queue, used_bytes=0)
    return not is_about_the_same or moved > _STEP * max(1, one.queue.max_bytes)

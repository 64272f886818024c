"""A process reports what it alone knows: on a change, and once in a while, never without a reason."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carteiro.errors import QueueAway, StoreUnavailable
from carteiro.maintenance.report import Reporter, open_circuits, report
from carteiro.model import ProviderStanding
from carteiro.model.reports import QueueReport, Report
from carteiro.ports.queue import QueueMemory

NOON = datetime(2027, 1, 15, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


class Written:
    """A store that remembers what was written."""

    def __init__(self) -> None:
        self.put_ones: list[Report] = []
        self.withdrawn = 0
        self.fault: Exception | None = None  # of a withdrawal

    async def put(self, report: Report, *, stay: timedelta) -> None:
        """Remember it."""
        assert stay > MINUTE
        self.put_ones.append(report)

    async def withdraw(self, process: str) -> None:
        """Count it."""
        assert process
        self.withdrawn += 1
        if self.fault is not None:
            raise self.fault

    async def show(self) -> list[Report]:
        """The last one."""
        return self.put_ones[-1:]


class Queue:
    """A queue whose state a test sets; None: it is unreachable."""

    memory: QueueMemory | None = QueueMemory(10, 100, is_full=False)

    async def look(self) -> QueueMemory:
        """As set."""
        if self.memory is None:
            raise QueueAway("the queue is unreachable")
        return self.memory


def _standing(open_since: datetime | None) -> ProviderStanding:
    since = None if open_since is None else open_since.timestamp()
    return ProviderStanding("smtp", open_since is not None, None, 0, since, since)


@pytest.fixture
def written() -> Written:
    """A store without reports."""
    return Written()


async def test_healthy_process_writes_nothing(written: Written) -> None:
    """However often it looks."""
    reporter = Reporter(written, lambda: [_standing(None)], None)
    for minute in range(10):
        await reporter.round(NOON + minute * MINUTE)

    assert (written.put_ones, written.withdrawn) == ([], 0)


async def test_open_circuit_is_written_on_change_and_renewed(written: Written) -> None:
    """Then withdrawn once, when it is closed."""
    standings = [_standing(NOON)]
    reporter = Reporter(written, lambda: standings, None)
    for seconds in range(0, 120, 10):
        await reporter.round(NOON + seconds * SECOND)
    standings[0] = _standing(None)
    for seconds in (120, 130):
        await reporter.round(NOON + seconds * SECOND)

    assert [each.circuits for each in written.put_ones] == [{"smtp": NOON}] * 2
    assert written.withdrawn == 1


async def test_report_is_withdrawn_when_the_process_stops(written: Written) -> None:
    """A circuit of a process that has ended is not open; an unreachable store does not prevent the stop."""
    away = Written()
    away.fault = StoreUnavailable("it is unreachable")
    for store in (written, away):
        reporting = asyncio.create_task(report(store, lambda: [_standing(NOON)], None))
        while not store.put_ones:
            await asyncio.sleep(0)
        reporting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reporting

    assert (written.withdrawn, away.withdrawn) == (1, 1)


async def test_circuit_that_opens_again_is_written_at_once(written: Written) -> None:
    """Others know by it that its pause runs."""
    standings = [_standing(NOON)]
    reporter = Reporter(written, lambda: standings, None)
    await reporter.round(NOON)
    again = NOON + 10 * SECOND
    standings[0] = replace(standings[0], trouble_at=again.timestamp())
    await reporter.round(again)

    assert [each.opened for each in written.put_ones] == [{"smtp": NOON}, {"smtp": again}]


def test_half_open_circuit_of_an_idle_process_is_not_open() -> None:
    """It makes no call that could close it, for hours."""
    mine, other = [_standing(NOON)], Report("b", {"ses": NOON}, None, {"ses": NOON + 30 * SECOND})

    def found(seconds: int) -> set[str]:
        return open_circuits(mine, [other], NOON + seconds * SECOND)

    assert [found(each) for each in (75, 76, 105, 106)] == [
        {"smtp", "ses"},
        {"ses"},
        {"ses"},
        set(),
    ]
    assert open_circuits([_standing(None)], [], NOON) == set()


async def test_queue_is_written_when_its_memory_moves(written: Written) -> None:
    """By more than a hundredth of its limit, or once a minute."""
    queue = Queue()
    reporter = Reporter(written, list, queue)
    for seconds, used in ((0, 1000), (10, 1005), (20, 1101), (30, 1102), (80, 1102)):
        queue.memory = QueueMemory(used, 10_000, is_full=False)
        await reporter.round(NOON + seconds * SECOND)

    told = [each.queue.used_bytes for each in written.put_ones if each.queue]
    assert told == [1000, 1101, 1102]


async def test_refusals_are_those_of_the_last_minutes(written: Written) -> None:
    """Refusals before the first look at a server are not known; those of its last run are over."""
    queue = Queue()
    reporter = Reporter(written, list, queue)

    async def told(minute: int, rejected: int, out_of_memory: int, run: str = "1") -> Any:
        queue.memory = QueueMemory(
            10, 100, is_full=False, rejected=rejected, out_of_memory=out_of_memory, run=run
        )
        await reporter.round(NOON + minute * MINUTE)
        last = written.put_ones[-1].queue
        return last and (last.rejected, last.out_of_memory)

    assert await told(0, 7, 7) == (0, 0)
    assert await told(1, 9, 7) == (2, 0)
    assert await told(2, 1, 3) == (3, 3)  # somebody has reset its counters
    assert await told(5, 1, 3) == (3, 3)
    assert await told(7, 1, 3) == (0, 0)
    assert await told(8, 2, 4) == (1, 1)
    assert await told(9, 0, 0, "2") == (0, 0)
    assert await told(10, 0, 1, "2") == (0, 1)


async def test_clock_that_is_set_back_stops_no_report(written: Written) -> None:
    """The store takes a report that ends in the far future for one of a clock that was ahead: it needs another."""
    queue = Queue()
    reporter = Reporter(written, lambda: [_standing(NOON)], queue)
    for hour, rejected in ((5, 0), (0, 7), (0, 9)):
        queue.memory = QueueMemory(10, 100, is_full=False, rejected=rejected)
        await reporter.round(NOON + hour * 60 * MINUTE)

    assert [each.queue and each.queue.rejected for each in written.put_ones] == [0, 0, 2]


async def test_unreachable_queue_is_reported_since_when(written: Written) -> None:
    """With its last known memory, until it is back."""
    queue = Queue()
    reporter = Reporter(written, list, queue)
    await reporter.round(NOON)
    queue.memory = None
    for seconds in (10, 20):
        await reporter.round(NOON + seconds * SECOND)
    queue.memory = QueueMemory(11, 100, is_full=False)
    await reporter.round(NOON + 30 * SECOND)

    away = QueueReport(10, 100, away_since=NOON + 10 * SECOND)
    assert [each.queue for each in written.put_ones] == [
        QueueReport(10, 100),
        away,
        QueueReport(11, 100),
    ]

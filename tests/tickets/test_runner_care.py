"""One worker of the lane on a log in memory: what it asks, what it remembers, and handlers that do not end."""

import asyncio
from contextlib import suppress
from datetime import timedelta

import pytest

from carteiro.tickets.health import FEWEST_FAILED
from carteiro.tickets.runner import HandlersGoOn
from carteiro.tickets.ticket import Ticket
from support.memory_lane import MemoryLane, ids
from support.ticket_log import TOPIC


class Deaf:
    """A handler that goes on when it is cancelled, until it may end."""

    def __init__(self) -> None:
        self.told = 0
        self.may_end = asyncio.Event()

    async def __call__(self, _: Ticket) -> None:
        """Take no notice."""
        while not self.may_end.is_set():
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                self.told += 1


async def test_only_what_another_may_have_had_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as the last owner may have been ahead of his commit; what comes after is new to everybody."""
    monkeypatch.setattr("carteiro.tickets.runner._OVERSHOOT", 50)
    lane = MemoryLane(window=50)
    for id in ids("t", 1000):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1000)
    assert lane.counter.questions == 2


async def test_of_a_partition_that_comes_back_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another had it meanwhile."""
    monkeypatch.setattr("carteiro.tickets.runner._OVERSHOOT", 0)
    lane = MemoryLane(window=10)
    for id in ids("t", 100):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 100)
        await lane.log.revoke((TOPIC, 0))
        lane.log.put("bad", fails=9)
        lane.counter.failures["bad"] = 2
        await lane.log.give((TOPIC, 0))
        await lane.until(lambda: lane.log.committed == 101)
    assert lane.runs[-1] == ("bad", 3)


async def test_each_attempt_begins_with_what_was_sent() -> None:
    """Whatever the attempt before has made of it."""
    lane = MemoryLane()
    lane.log.put("t", steps=[1])
    seen: list[list[int]] = []

    async def spoiling(ticket: Ticket) -> None:
        seen.append([*ticket.fields["steps"]])
        ticket.fields["steps"].append(2)
        if len(seen) == 1:
            raise ConnectionError("away")

    lane.function = spoiling
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1)
    assert seen == [[1], [1]]


async def test_a_permanent_error_is_final_though_dead_letters_are_switched_off() -> None:
    """The next worker holds the ticket, too, and does not run it."""
    lane = MemoryLane(dlq_enabled=False)
    lane.log.put("never", permanent=True)
    async with lane.working() as runner:
        await lane.until(lambda: runner.held_keys == 1 and (TOPIC, 0) in lane.log.commits)
    async with lane.working() as runner:
        await lane.until(lambda: runner.held_keys == 1)
    assert lane.runs == [("never", 1)]
    assert lane.log.committed == 0


async def test_keys_that_wait_for_the_end_of_an_outage_are_held() -> None:
    """Whoever looks at the figures sees that something waits."""
    lane = MemoryLane(concurrency=5)
    lane.is_out = True
    for id in ids("t", 2 * FEWEST_FAILED):
        lane.log.put(id)
    async with lane.working() as runner:
        await lane.until(lambda: runner.lines[0].health.is_out)
        await lane.until(lambda: runner.held_keys == 2 * FEWEST_FAILED)
        lane.is_out = False
        await lane.until(lambda: lane.log.committed == 2 * FEWEST_FAILED)
        assert runner.held_keys == 0


async def test_a_handler_that_takes_no_notice_is_told_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until it ends; late is late, so that it has failed."""
    monkeypatch.setattr("carteiro.tickets.hands._AGAIN_S", 0.001)
    lane = MemoryLane()
    lane.log.put("t")
    deaf = Deaf()
    lane.function = deaf.__call__
    async with lane.working(time_limit=timedelta(milliseconds=5)):
        await lane.until(lambda: deaf.told >= 3)
        deaf.may_end.set()
        await lane.until(lambda: lane.log.committed == 1)


async def test_a_handler_that_never_ends_keeps_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs it is told that only the end of the process ends it."""
    monkeypatch.setattr("carteiro.tickets.runner._FAREWELL", timedelta(milliseconds=10))
    lane = MemoryLane(drain_ms=1)
    lane.log.put("t")
    deaf = Deaf()
    lane.function = deaf.__call__
    runner = lane.runner()
    running = asyncio.create_task(runner.run())
    await lane.until(lambda: runner.lines[0].running == 1)
    runner.stop()
    with pytest.raises(HandlersGoOn, match="CancelledError"):
        await running
    assert lane.log.committed == 0
    deaf.may_end.set()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*(each.task for each in runner._hands._hands if each.task))

"""One worker of the lane on a log in memory: handlers that misbehave, take their time, or never end."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from carteiro.tickets.consume.lanes import Lanes, Line, Partition, Work, works_of
from carteiro.tickets.consume.notes import read_notes
from carteiro.tickets.consume.offsets import Offsets
from carteiro.tickets.consume.pool import HandlerPool
from carteiro.tickets.consume.runner import HandlersGoOn
from carteiro.tickets.ticket import Ticket, read
from support.deaths import a_ticket_record
from support.hostile_errors import HOSTILE
from support.memory_lane import MemoryLane
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


async def test_each_attempt_begins_with_the_original_payload() -> None:
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


async def test_handler_that_ignores_the_cancellation_is_cancelled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until it ends; late is late, so that it has failed."""
    monkeypatch.setattr("carteiro.tickets.consume.pool._AGAIN_S", 0.001)
    lane = MemoryLane()
    lane.log.put("t")
    deaf = Deaf()
    lane.function = deaf.__call__
    async with lane.working(time_limit=timedelta(milliseconds=5)):
        await lane.until(lambda: deaf.told >= 3)
        deaf.may_end.set()
        await lane.until(lambda: lane.log.committed == 1)


async def test_a_handler_that_never_ends_keeps_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says that only the end of the process ends it."""
    for name in ("_FAREWELL", "_CLEANING_UP"):
        monkeypatch.setattr(f"carteiro.tickets.consume.runner.{name}", timedelta(milliseconds=10))
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
        await asyncio.gather(*(each.task for each in runner._pool._slots if each.task))


class CleaningUp:
    """A handler that takes its time when it is cancelled, as one that undoes things."""

    def __init__(self) -> None:
        self.is_cancelled = asyncio.Event()
        self.may_end = asyncio.Event()
        self.ends = 0

    async def __call__(self, _: Ticket) -> None:
        """Wait for ever, and for a while longer."""
        try:
            await asyncio.Event().wait()
        finally:
            self.is_cancelled.set()
            await self.may_end.wait()
            self.ends += 1


async def test_a_handler_that_is_late_may_clean_up() -> None:
    """Nobody interrupts that; then it has failed."""
    lane = MemoryLane()
    lane.log.put("t")
    handler = CleaningUp()
    lane.function = handler.__call__
    async with lane.working(time_limit=timedelta(milliseconds=5)):
        await handler.is_cancelled.wait()
        await asyncio.sleep(0.3)  # several looks at the clock
        handler.may_end.set()
        await lane.until(lambda: lane.log.committed == 1)
    assert handler.ends == 3
    assert lane.dead_letters.deaths[0].error_type == "Timeout"


async def test_a_handler_may_clean_up_when_its_worker_stops() -> None:
    """It is cancelled when it has had its time, and then waited for."""
    lane = MemoryLane(drain_ms=1)
    lane.log.put("t")
    handler = CleaningUp()
    lane.function = handler.__call__
    runner = lane.runner()
    running = asyncio.create_task(runner.run())
    await lane.until(lambda: runner.lines[0].running == 1)
    runner.stop()
    await handler.is_cancelled.wait()
    await asyncio.sleep(1.2)  # longer than its partition waits
    handler.may_end.set()
    await running
    assert handler.ends == 1


def _cancel_own_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def _turn_a_cancellation_into_an_error() -> None:
    _cancel_own_task()
    try:
        await asyncio.sleep(1)
    except asyncio.CancelledError:
        raise TimeoutError("in its own way") from None


async def _leave_one_behind() -> None:
    _cancel_own_task()


async def _swallow_one() -> None:
    _cancel_own_task()
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(1)


async def _be_cancelled() -> None:
    _cancel_own_task()
    await asyncio.sleep(1)


@pytest.mark.parametrize(
    ("does", "fails"),
    [
        (_turn_a_cancellation_into_an_error, True),
        (_be_cancelled, True),
        (_leave_one_behind, False),
        (_swallow_one, False),
    ],
)
async def test_handler_that_cancels_its_own_task_does_not_harm_others(
    does: Callable[[], Awaitable[None]], fails: bool
) -> None:
    """Libraries that limit times do so, and some leave it behind: the same hand goes on with other tickets."""
    lane = MemoryLane(concurrency=1)
    lane.log.put("odd")
    lane.log.put("bad")
    lane.log.put("good")

    async def handle(ticket: Ticket) -> None:
        if ticket.id == "odd":
            await does()
        else:
            await asyncio.sleep(0)
        if ticket.id == "bad":
            raise ValueError("its own")
        lane.done.append(ticket.id)

    lane.function = handle
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 3)
    assert {*lane.dead_letters.reasons} == ({"odd", "bad"} if fails else {"bad"})
    assert {*lane.done} == ({"good"} if fails else {"odd", "good"})


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_error_is_a_failure_of_its_ticket_alone(name: str) -> None:
    """Whatever its own code does when it is read: it is counted, dead after its attempts, and the worker goes on."""
    lane = MemoryLane()
    lane.log.put("bad")
    lane.log.put("good")

    async def raising(ticket: Ticket) -> None:
        if ticket.id == "bad":
            error = HOSTILE[name]()
            raise error
        lane.done.append(ticket.id)

    lane.function = raising
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 2)
    assert lane.done == ["good"]
    [death] = lane.dead_letters.deaths
    assert (death.ticket.id, death.reason, death.failures) == ("bad", "max_retries_exceeded", 3)


async def test_returned_tickets_stay_until_they_are_settled() -> None:
    """An error in settling must not lose them."""
    lines = [*MemoryLane().runner().lines]
    settled: list[list[Work]] = []
    errors = [RuntimeError("a bug")]

    def settle(_: Line, returned: list[Work]) -> None:
        if errors:
            raise errors.pop()
        settled.append([*returned])

    pool = HandlerPool(Lanes(lines, bury=print), 1, settle=settle, look_around=print)
    partition = Partition((TOPIC, 0), Offsets())
    [work] = works_of([read(a_ticket_record())], partition, {lines[0].type: lines[0]})
    lines[0].returned.append(work)
    with pytest.raises(RuntimeError, match="a bug"):
        pool.settle_returned()

    assert pool.settle_returned()
    assert not pool.settle_returned()
    assert settled == [[work]]


class Speechless(Exception):
    """One that cannot say what it is."""

    def __str__(self) -> str:
        """Say nothing."""
        raise RuntimeError("nothing to say")


async def test_error_that_cannot_be_printed_is_still_an_error() -> None:
    """Its ticket is dead, its worker goes on."""
    lane = MemoryLane()
    lane.log.put("bad")

    async def raising(_: Ticket) -> None:
        raise Speechless

    lane.function = raising
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1)
    assert lane.dead_letters.deaths[0].error == "Speechless"


async def test_second_signal_waits_for_nothing_and_keeps_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even for a handler that takes no notice."""
    monkeypatch.setattr("carteiro.tickets.consume.runner._FAREWELL", timedelta(milliseconds=10))
    lane = MemoryLane(drain_ms=60_000)
    lane.log.put("deaf")
    lane.log.put("good")
    deaf, may_end = Deaf(), asyncio.Event()

    async def handle(ticket: Ticket) -> None:
        if ticket.id == "deaf":
            await deaf(ticket)
        await may_end.wait()

    lane.function = handle
    runner = lane.runner()
    running = asyncio.create_task(runner.run())
    await lane.until(lambda: runner.lines[0].running == 2)
    runner.stop()
    may_end.set()
    await lane.until(lambda: runner.lines[0].running == 1)
    runner.stop_now()
    with pytest.raises(HandlersGoOn):
        await running
    noted = read_notes(lane.log.commits[TOPIC, 0].notes)
    assert noted is not None
    assert [noted.is_done(each) for each in (0, 1)] == [False, True]
    deaf.may_end.set()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*(each.task for each in runner._pool._slots if each.task))


async def test_ticket_that_ends_during_the_wait_for_others_is_committed() -> None:
    """A process that is killed then loses nothing of it."""
    lane = MemoryLane(drain_ms=60_000)
    lane.log.put("good")
    lane.log.put("slow")
    for id in ("good", "slow"):
        lane.gates[id] = asyncio.Event()
    async with lane.working() as runner:
        await lane.until(lambda: lane.under_way == 2)
        runner.stop()
        lane.gates["good"].set()
        await lane.until(lambda: lane.log.committed == 1)
        lane.gates["slow"].set()
    assert lane.log.committed == 2

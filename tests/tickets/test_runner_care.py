"""One worker of the lane on a log in memory: what it asks, what it remembers, and handlers that do not end."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from carteiro.policy.retry import RetryPolicy
from carteiro.tickets.health import FEWEST_FAILED
from carteiro.tickets.lanes import Partition, Work
from carteiro.tickets.notes import Noted, note_down, read_notes
from carteiro.tickets.offsets import Offsets
from carteiro.tickets.ports import Commit
from carteiro.tickets.runner import HandlersGoOn
from carteiro.tickets.ticket import Ticket, read
from support.memory_lane import NEVER_AGAIN, MemoryLane, ids
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
    monkeypatch.setattr("carteiro.tickets.runner._READ_AHEAD", 150)
    lane = MemoryLane()
    for id in ids("t", 1000):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1000)
    assert lane.counter.questions == 150 / 50


@pytest.mark.parametrize(("noted", "window"), [(500, 100), (200, 500)])
async def test_beyond_what_the_last_commit_says_is_asked(
    monkeypatch: pytest.MonkeyPatch, noted: int, window: int
) -> None:
    """The last owner had read so much further, and somebody killed it; its notes may not have had room for all."""
    monkeypatch.setattr("carteiro.tickets.runner._READ_AHEAD", 100)
    monkeypatch.setattr("carteiro.tickets.runner._OVERSHOOT", 0)
    lane = MemoryLane(window=window)
    for id in ids("t", 1000):
        lane.log.put(id)
    notes = note_down(Noted(0, noted, {0: 0}))
    lane.log.commits[TOPIC, 0] = Commit((TOPIC, 0), 0, notes)
    lane.counter.graves = {f"t{at}": f"{TOPIC}|0|{at}" for at in (599, 600)}
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1000)
    assert "t599" not in lane.done
    assert "t600" in lane.done  # nobody can have been there
    assert len(lane.done) == 1000 - noted


async def test_of_a_partition_that_comes_back_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another had it meanwhile."""
    monkeypatch.setattr("carteiro.tickets.runner._READ_AHEAD", 10)
    lane = MemoryLane()
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


async def test_so_does_one_that_was_not_charged() -> None:
    """In an outage a ticket is tried again as if nothing had been."""
    lane = MemoryLane()
    for id in ids("t", FEWEST_FAILED):
        lane.log.put(id, steps=[1])
    seen: list[list[int]] = []

    async def spoiling(ticket: Ticket) -> None:
        seen.append([*ticket.fields["steps"]])
        ticket.fields["steps"].append(2)
        if len(seen) <= FEWEST_FAILED:
            raise ConnectionError("away")

    lane.function = spoiling
    async with lane.working():
        await lane.until(lambda: lane.log.committed == FEWEST_FAILED)
    assert all(each == [1] for each in seen)


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
    for name in ("_FAREWELL", "_CLEANING_UP"):
        monkeypatch.setattr(f"carteiro.tickets.runner.{name}", timedelta(milliseconds=10))
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
    assert lane.graves.deaths[0].error_type == "Timeout"


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
async def test_who_cancels_its_own_task_harms_nobody_else(
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
    assert {*lane.graves.reasons} == ({"odd", "bad"} if fails else {"bad"})
    assert {*lane.done} == ({"good"} if fails else {"odd", "good"})


class Speechless(Exception):
    """One that cannot say what it is."""

    def __str__(self) -> str:
        """Say nothing."""
        raise RuntimeError("nothing to say")


async def test_an_error_that_cannot_be_told_is_one_all_the_same() -> None:
    """Its ticket is dead, its worker goes on."""
    lane = MemoryLane()
    lane.log.put("bad")

    async def raising(_: Ticket) -> None:
        raise Speechless

    lane.function = raising
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1)
    assert lane.graves.deaths[0].error == "Speechless"


async def test_who_cannot_commit_does_not_read_on_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes after asks what is known of just so many."""
    monkeypatch.setattr("carteiro.tickets.committing.MOST_UNNOTED", 200)
    lane = MemoryLane()
    lane.log.refuses_commits = True
    for id in ids("t", 1000):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: bool(lane.log.paused))
        await asyncio.sleep(0.05)
        assert len(lane.done) <= 300
        lane.log.refuses_commits = False
        await lane.until(lambda: lane.log.committed == 1000)


async def test_a_second_signal_waits_for_nothing_and_keeps_what_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even for a handler that takes no notice."""
    monkeypatch.setattr("carteiro.tickets.runner._FAREWELL", timedelta(milliseconds=10))
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
        await asyncio.gather(*(each.task for each in runner._hands._hands if each.task))


async def test_what_ends_while_others_are_waited_for_is_committed() -> None:
    """Whoever kills the process then loses nothing of it."""
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


async def test_a_type_goes_on_after_an_outage_though_nothing_else_happens() -> None:
    """No other ticket comes, nobody else calls a hand."""
    lane = MemoryLane()
    lane.is_out = True
    for id in ids("t", 2 * FEWEST_FAILED):
        lane.log.put(id)
    async with lane.working() as runner:
        await lane.until(lambda: runner.lines[0].health.is_out)
        failed = len(lane.runs)
        await lane.until(lambda: len(lane.runs) > failed)
        lane.is_out = False
        await lane.until(lambda: lane.log.committed == 2 * FEWEST_FAILED)
    assert not lane.graves.deaths
    total = f'carteiro_tickets_failed_total{{task_type="BUILD"}} {len(lane.runs) - len(lane.done)}'
    assert total.encode() in lane.metrics.page()


async def test_many_poison_tickets_that_hold_up_a_window_are_no_outage() -> None:
    """All that could succeed has: those that are left fail one after the other, and die of it."""
    lane = MemoryLane(retry=NEVER_AGAIN, window=1000)
    for each in range(3000):
        lane.log.put(f"t{each}", fails=9 if each % 60 == 0 else 0)
    async with lane.working() as runner:
        await lane.until(lambda: len(lane.done) == 2950)
        assert not runner.lines[0].health.is_out
    assert len(lane.graves.deaths) > 2 * FEWEST_FAILED


async def test_poison_tickets_that_fail_again_together_are_no_outage() -> None:
    """They failed among others that did not, and their waits are over at the same moment."""
    lane = MemoryLane(retry=RetryPolicy(max_attempts=3, base=timedelta(milliseconds=200), jitter=0))
    for each in range(2000):
        lane.log.put(f"t{each}", fails=9 if each % 50 == 0 else 0)
    async with lane.working() as runner:
        await lane.until(lambda: lane.log.committed == 2000)
        assert not runner.lines[0].health.is_out
    assert len(lane.graves.deaths) == 40
    assert len(lane.runs) == 1960 + 3 * 40


async def test_in_an_outage_those_are_tried_first_that_never_failed() -> None:
    """Behind many that fail for reasons of their own, one that succeeds ends it at once."""
    lane = MemoryLane()
    [line] = [each for each in lane.runner().lines if each.type == "BUILD"]
    partition = Partition((TOPIC, 0), Offsets())
    works = [Work(read(lane.log.put(id)), partition, line, 0) for id in ids("t", 4)]
    for work, failures in zip(works, (2, 1, 0, 1), strict=True):
        work.failures = failures
        line.ready.append(work)
    for id in ids("f", FEWEST_FAILED):
        line.health.failed(0, 0.0, 0.5, id=id)

    assert line.health.is_out
    assert [line.pop().ticket.id for _ in works] == ["t2", "t0", "t1", "t3"]


async def test_so_many_unfinished_tickets_are_held_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However small they are: each costs memory."""
    monkeypatch.setattr("carteiro.tickets.committing._MOST_UNFINISHED", 200)
    lane = MemoryLane(concurrency=1)
    lane.gates["t0"] = asyncio.Event()
    for id in ids("t", 1000):
        lane.log.put(id)
    async with lane.working() as runner:
        await lane.until(lambda: bool(lane.log.paused))
        await asyncio.sleep(0.02)
        [partition] = runner._partitions.values()
        assert partition.offsets.unfinished <= 250
        lane.gates["t0"].set()
        await lane.until(lambda: lane.log.committed == 1000)


async def test_who_has_nothing_new_to_commit_reads_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that comes is known to be done by the notes, and one that was not is still under way."""
    monkeypatch.setattr("carteiro.tickets.committing.MOST_UNNOTED", 100)
    lane = MemoryLane()
    lane.gates["t0"] = asyncio.Event()
    for id in ids("t", 50):
        lane.log.put(id)
    notes = note_down(Noted(0, 500, {0: 0}))
    lane.log.commits[TOPIC, 0] = Commit((TOPIC, 0), 0, notes)
    async with lane.working():
        await lane.until(lambda: bool(lane.log.history))
        for at in range(50, 500):
            lane.log.put(f"t{at}")
        await asyncio.sleep(0.1)  # several looks at what is to be committed
        for at in range(500, 600):  # a whole batch waits behind the one that is under way
            lane.log.put(f"t{at}", key="t0" if at < 550 else None)
        await lane.until(lambda: len(lane.done) == 50)
        lane.gates["t0"].set()
        await lane.until(lambda: lane.log.committed == 600)

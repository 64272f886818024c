"""One worker of the lane on a log in memory: failures and dead letters of a batch, together and apart."""

import asyncio
from collections import Counter

import pytest

from carteiro.policy.retry import RetryPolicy
from carteiro.tickets.consume.pool import HandlerPool
from carteiro.tickets.ticket import Ticket
from support.memory_lane import NEVER_AGAIN, MemoryLane, ids
from support.ticket_log import TOPIC

ONCE = RetryPolicy(max_attempts=1)


@pytest.fixture(autouse=True)
def _one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers that do not wait all return in one turn, however slow the machine is."""
    monkeypatch.setattr("carteiro.tickets.consume.pool._BREATH_S", 60.0)


def a_lane_that_never_waits(retry: RetryPolicy) -> MemoryLane:
    """A lane whose handlers fail, if their tickets say so, or are done; all at once."""
    lane = MemoryLane(retry=retry)

    async def handle(ticket: Ticket) -> None:
        lane.runs.append((ticket.id, ticket.attempt))
        if ticket.fields.get("fails"):
            raise ValueError("broken")
        lane.done.append(ticket.id)

    lane.function = handle
    return lane


async def test_failures_of_a_batch_are_counted_in_one_question() -> None:
    """Tickets that succeed cost no question at all, once nobody can have had them before."""
    lane = a_lane_that_never_waits(NEVER_AGAIN)
    for each in range(50):
        lane.log.put(f"t{each}", fails=each % 5 == 0)
    async with lane.working():
        await lane.until(lambda: len(lane.counter.failures) == 10)

    assert lane.counter.questions == 1
    assert lane.counter.counts == [[f"t{each}" for each in range(0, 50, 5)]]


async def test_dead_letters_of_a_batch_are_published_and_forgotten_together() -> None:
    """One wait for the broker, one question to the counter; those that succeed go their own way."""
    lane = a_lane_that_never_waits(ONCE)
    for each in range(50):
        lane.log.put(f"t{each}", fails=each % 5 == 0)
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 50)

    dead = [f"t{each}" for each in range(0, 50, 5)]
    assert lane.dead_letters.batches == [dead]
    assert lane.counter.ends == [dead]
    assert len(lane.done) == 40


async def test_a_failure_inside_a_batch_delays_its_own_key_alone() -> None:
    """The tickets before and after it in the same batch are done, those behind it in its key wait."""
    lane = MemoryLane(retry=NEVER_AGAIN)
    for each in range(30):
        lane.log.put(f"t{each}", key=f"k{each % 10}", fails=each == 4)
    async with lane.working() as runner:
        await lane.until(lambda: len(lane.done) == 27 and runner.held_keys == 1)

    assert {"t4", "t14", "t24"}.isdisjoint(lane.done)
    for key in range(10):
        own = [id for id in lane.done if int(id[1:]) % 10 == key]
        assert own == sorted(own, key=lambda id: int(id[1:]))


async def test_one_dead_letter_of_a_batch_that_cannot_be_published_is_tried_again_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The others are buried at once, and their keys go on."""
    monkeypatch.setattr("carteiro.tickets.consume.dead_lettering._FIRST_PAUSE_S", 0.001)
    lane = a_lane_that_never_waits(ONCE)
    lane.dead_letters.refused = {"bad2"}
    for id in ids("bad", 5):
        lane.log.put(id, key=id, fails=1)
        lane.log.put(f"after-{id}", key=id)
    async with lane.working() as runner:
        await lane.until(lambda: len(lane.done) == 4 and len(lane.dead_letters.batches) > 3)
        await lane.until(lambda: lane.log.committed == 4)  # up to the one that is not safe
        assert runner.held_keys == 1
        lane.dead_letters.refused.clear()
        await lane.until(lambda: lane.log.committed == 10)

    assert lane.dead_letters.batches[0] == [*ids("bad", 5)]
    assert set(map(tuple, lane.dead_letters.batches[1:])) == {("bad2",)}
    assert sorted(lane.dead_letters.reasons) == [*ids("bad", 5)]
    assert [id for id, _ in lane.runs if id.startswith("bad")] == [*ids("bad", 5)]
    assert "after-bad2" in lane.done


async def test_worker_killed_between_count_and_publish_leaves_full_counts() -> None:
    """The next one publishes all of the batch without another run."""
    lane = a_lane_that_never_waits(ONCE)
    lane.dead_letters.fails = 1000
    for id in ids("bad", 10):
        lane.log.put(id, fails=9)
    async with lane.working() as runner:
        await lane.until(lambda: bool(lane.dead_letters.batches))
        runner.stop_now()
    assert lane.counter.failures == dict.fromkeys(ids("bad", 10), 1)
    assert lane.log.committed == 0

    lane.dead_letters.fails = 0
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 10)

    assert len(lane.runs) == 10
    assert sorted(lane.dead_letters.reasons) == [*ids("bad", 10)]


async def test_counter_that_goes_down_in_the_middle_of_a_batch_changes_no_end() -> None:
    """Failures before and after it are all counted, by the counter or by the worker."""
    lane = MemoryLane()
    seen = 0

    async def handle(ticket: Ticket) -> None:
        nonlocal seen
        seen += 1
        lane.counter.away = seen > 60
        await lane.handle(ticket)

    lane.function = handle
    for id in ids("bad", 40):
        lane.log.put(id, fails=9)
    lane.error = ValueError("broken")
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 40)

    assert Counter(id for id, _ in lane.runs) == dict.fromkeys(ids("bad", 40), 3)
    assert set(lane.dead_letters.reasons) == {*ids("bad", 40)}


async def test_failures_are_counted_before_their_partition_is_given_back() -> None:
    """Or the next owner would run them once more than is allowed."""
    lane = MemoryLane(retry=NEVER_AGAIN)
    for id in ids("bad", 5):
        lane.gates[id] = asyncio.Event()
        lane.log.put(id, fails=9)
    async with lane.working():
        await lane.until(lambda: lane.under_way == 5)
        leaving = asyncio.create_task(lane.log.revoke((TOPIC, 0)))
        await asyncio.sleep(0)
        for gate in lane.gates.values():
            gate.set()
        await leaving
        assert lane.counter.failures == dict.fromkeys(ids("bad", 5), 1)


async def test_handlers_that_do_not_wait_share_one_settlement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that wait do not keep the others: each is settled at the next turn of the loop."""
    settled: list[list[str]] = []
    settle = HandlerPool.settle_returned

    def noted(self: HandlerPool) -> bool:
        returned = [work.ticket.id for line in self._lanes.lines.values() for work in line.returned]
        if returned:
            settled.append(returned)
        return settle(self)

    monkeypatch.setattr(HandlerPool, "settle_returned", noted)
    lane = MemoryLane()
    gate = asyncio.Event()

    async def handle(ticket: Ticket) -> None:
        if ticket.id == "t20":
            await gate.wait()

    lane.function = handle
    for id in ids("t", 50):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: sum(map(len, settled)) == 49)
        assert settled == [[*ids("t", 20)], [f"t{each}" for each in range(21, 50)]]
        gate.set()
        await lane.until(lambda: lane.log.committed == 50)

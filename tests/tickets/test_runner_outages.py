"""One worker of the lane on a log in memory: an outage is told from poison, and ends by itself."""

from datetime import timedelta

from carteiro.policy.retry import RetryPolicy
from carteiro.tickets.health import FEWEST_FAILED
from carteiro.tickets.lanes import Partition, Work
from carteiro.tickets.offsets import Offsets
from carteiro.tickets.ticket import Ticket, read
from support.memory_lane import NEVER_AGAIN, MemoryLane, ids
from support.ticket_log import TOPIC


async def test_an_attempt_that_was_not_charged_leaves_what_was_sent() -> None:
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

"""One worker of the lane on a log in memory: a type pauses while it cannot reach something, and goes on by itself."""

import errno
import socket
from collections import Counter
from datetime import timedelta
from urllib.error import HTTPError

import httpx
import pytest

from carteiro.errors import DeliveryFailed
from carteiro.policy.classify import network
from carteiro.policy.retry import RetryPolicy
from carteiro.tickets.consume.handler_error import OutOfTime, read_error
from carteiro.tickets.consume.handlers import Permanent
from carteiro.tickets.consume.lanes import Partition, works_of
from carteiro.tickets.consume.offsets import Offsets
from carteiro.tickets.ticket import read
from support.memory_lane import NEVER_AGAIN, TICKETS, MemoryLane, ids, settings_of
from support.ticket_log import TOPIC


class BuildBroken(Exception):
    """An error of a handler's own."""


class Unanswered(Exception):
    """An error of a client that has a status, and no response to show."""

    status = 503

    @property
    def response(self) -> object:
        """Refuse, as some clients do."""
        raise RuntimeError("there is no response")


async def test_ordinary_failures_pause_nothing_however_many_there_are() -> None:
    """Each that fails three times is a dead letter, and the healthy ones of the type go on."""
    lane = MemoryLane()
    lane.error = BuildBroken("no such commit")
    for id in ids("ill", 3 * TICKETS):
        lane.log.put(id, fails=9)
    for id in ids("well", TICKETS):
        lane.log.put(id)
    async with lane.working() as runner:
        await lane.until(lambda: lane.log.committed == 4 * TICKETS)
        assert not runner.lines[0].health.breaker.is_open

    assert sorted(lane.dead_letters.reasons) == sorted(ids("ill", 3 * TICKETS))
    assert len(lane.done) == TICKETS
    assert max(Counter(id for id, _ in lane.runs).values()) == 3


async def test_a_ticket_that_fails_three_times_is_dead_whatever_the_others_do() -> None:
    """Also in a pause: there is nothing new that could be tried first."""
    lane = MemoryLane(pause_tickets=1, pause_share=0.01)
    lane.is_out = True
    lane.log.put("only")
    async with lane.working() as runner:
        await lane.until(lambda: runner.lines[0].health.breaker.is_open)
        await lane.until(lambda: lane.log.committed == 1)

    assert lane.runs == [("only", 1), ("only", 2), ("only", 3)]
    assert list(lane.dead_letters.reasons) == ["only"]


async def test_a_pause_has_an_end_though_nothing_succeeds() -> None:
    """All are started again, and die of it; it does not begin anew."""
    lane = MemoryLane(pause_at_most_ms=100)
    lane.is_out = True
    for id in ids("t", 3 * TICKETS):
        lane.log.put(id)
    async with lane.working() as runner:
        await lane.until(lambda: runner.lines[0].health.breaker.is_open)
        await lane.until(lambda: not runner.lines[0].health.breaker.is_open)
        await lane.until(lambda: lane.log.committed == 3 * TICKETS)
        assert not runner.lines[0].health.breaker.is_open

    assert len(lane.dead_letters.deaths) == 3 * TICKETS


async def test_pause_is_reported_while_it_lasts() -> None:
    """By a figure, for alerts and on the page of the process."""
    lane = MemoryLane()
    lane.is_out = True
    for id in ids("t", 2 * TICKETS):
        lane.log.put(id)
    async with lane.working() as runner:
        await lane.until(lambda: runner.lines[0].health.breaker.is_open)
        [paused] = lane.watch.paused.values()
        assert (paused.type, paused.error_type) == ("BUILD", "ConnectionError")
        assert b'carteiro_tickets_paused{task_type="BUILD"} 1.0' in lane.metrics.page()
        told = lane.news
        lane.is_out = False
        await lane.until(lambda: lane.log.committed == 2 * TICKETS)
        assert not lane.watch.paused
        assert lane.news > told
        assert b'carteiro_tickets_paused{task_type="BUILD"} 0.0' in lane.metrics.page()


async def test_switched_off_nothing_pauses() -> None:
    """All die, as fast as they fail."""
    lane = MemoryLane(pause=False)
    lane.is_out = True
    for id in ids("t", 3 * TICKETS):
        lane.log.put(id)
    async with lane.working() as runner:
        await lane.until(lambda: lane.log.committed == 3 * TICKETS)
        assert not runner.lines[0].health.breaker.is_open
    assert len(lane.dead_letters.deaths) == 3 * TICKETS


async def test_configured_errors_pause_too() -> None:
    """And nothing else does then."""
    lane = MemoryLane(pause_errors="BuildBroken")
    lane.is_out, lane.error = True, BuildBroken("the registry is down")
    for id in ids("t", 2 * TICKETS):
        lane.log.put(id)
    async with lane.working() as runner:
        await lane.until(lambda: runner.lines[0].health.breaker.is_open)
        lane.is_out = False
        await lane.until(lambda: lane.log.committed == 2 * TICKETS)


def _answer(status: int) -> httpx.HTTPStatusError:
    asked = httpx.Request("GET", "http://127.0.0.1/")
    return httpx.HTTPStatusError("no", request=asked, response=httpx.Response(status))


@pytest.mark.parametrize(
    ("error", "pauses"),
    [
        (ConnectionRefusedError("refused"), True),
        (BrokenPipeError("gone"), True),
        (socket.gaierror(-2, "Name or service not known"), True),
        (TimeoutError("late"), True),
        (OutOfTime("it took longer than 5 s"), True),
        (OSError(errno.EHOSTUNREACH, "No route to host"), True),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 111] …"), True),
        (httpx.ConnectError("refused"), True),
        (httpx.ReadTimeout("late"), True),
        (_answer(502), True),
        (_answer(503), True),
        (_answer(504), True),
        (HTTPError("http://127.0.0.1/", 503, "away", None, None), True),  # type: ignore[arg-type]
        (DeliveryFailed(network("ConnectError: refused")), True),
        (Unanswered("away"), True),
        (_answer(500), False),
        (_answer(429), False),
        (HTTPError("http://127.0.0.1/", 500, "broken", None, None), False),  # type: ignore[arg-type]
        (OSError(errno.ENOSPC, "No space left on device"), False),
        (FileNotFoundError("no such file"), False),
        (BuildBroken("broken"), False),
        (RuntimeError("connection"), False),
        (KeyError("commit"), False),
        (Permanent("never"), False),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else str(each),
)
def test_errors_about_reaching_something_are_known(error: Exception, pauses: bool) -> None:
    """By the settings as they come; all others are the ticket's own."""
    known = settings_of().pause_errors.split()
    assert read_error(error).names.isdisjoint(known) is not pauses


async def test_keys_that_wait_for_the_end_of_an_outage_are_held() -> None:
    """The figures show that something waits."""
    lane = MemoryLane(concurrency=5)
    lane.is_out = True
    for id in ids("t", 2 * TICKETS):
        lane.log.put(id)
    async with lane.working() as runner:
        await lane.until(lambda: runner.lines[0].health.breaker.is_open)
        await lane.until(lambda: runner.held_keys == 2 * TICKETS)
        lane.is_out = False
        await lane.until(lambda: lane.log.committed == 2 * TICKETS)
        assert runner.held_keys == 0


async def test_a_type_goes_on_after_an_outage_though_nothing_else_happens() -> None:
    """No other ticket comes, nobody else calls a hand."""
    lane = MemoryLane()
    lane.is_out = True
    for id in ids("t", 2 * TICKETS):
        lane.log.put(id)
    async with lane.working() as runner:
        await lane.until(lambda: runner.lines[0].health.breaker.is_open)
        failed = len(lane.runs)
        await lane.until(lambda: len(lane.runs) > failed)
        lane.is_out = False
        await lane.until(lambda: lane.log.committed == 2 * TICKETS)
    assert not lane.dead_letters.deaths
    total = f'carteiro_tickets_failed_total{{task_type="BUILD"}} {len(lane.runs) - len(lane.done)}'
    assert total.encode() in lane.metrics.page()


async def test_many_poison_tickets_that_hold_up_a_window_are_no_outage() -> None:
    """All that could succeed has: those that are left fail one after the other, and die of it."""
    lane = MemoryLane(retry=NEVER_AGAIN, window=1000)
    for each in range(3000):
        lane.log.put(f"t{each}", fails=9 if each % 60 == 0 else 0)
    async with lane.working() as runner:
        await lane.until(lambda: len(lane.done) == 2950)
        assert not runner.lines[0].health.breaker.is_open
    assert len(lane.dead_letters.deaths) > 2 * TICKETS


async def test_poison_tickets_that_fail_again_together_are_no_outage() -> None:
    """They failed among others that did not, and their waits are over at the same moment."""
    lane = MemoryLane(retry=RetryPolicy(max_attempts=3, base=timedelta(milliseconds=200), jitter=0))
    for each in range(2000):
        lane.log.put(f"t{each}", fails=9 if each % 50 == 0 else 0)
    async with lane.working() as runner:
        await lane.until(lambda: lane.log.committed == 2000)
        assert not runner.lines[0].health.breaker.is_open
    assert len(lane.dead_letters.deaths) == 40
    assert len(lane.runs) == 1960 + 3 * 40


async def test_in_an_outage_those_are_tried_first_that_never_failed() -> None:
    """Behind many that fail for reasons of their own, one that succeeds ends it at once."""
    lane = MemoryLane()
    [line] = [each for each in lane.runner().lines if each.type == "BUILD"]
    partition = Partition((TOPIC, 0), Offsets())
    tickets = [read(lane.log.put(id)) for id in ids("t", 4)]
    works = works_of(tickets, partition, {line.type: line})
    for work, failures in zip(works, (2, 1, 0, 1), strict=True):
        work.failures = failures
        line.ready.append(work)
    for id in ids("f", TICKETS):
        line.health.failed(0, 0.0, 0.5, id=id)

    assert line.health.breaker.is_open
    later = 3600.0  # each trial is long over
    taken = [line.take(later * each) for each in range(1, 5)]
    assert [work.ticket.id for work in taken if work] == ["t2", "t0", "t1", "t3"]

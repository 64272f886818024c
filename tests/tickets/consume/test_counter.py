"""Failures are counted in Redis, every key has an end, and nobody ever waits for a Redis that is down."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
import redis

from carteiro.errors import ConfigError
from carteiro.tickets.consume import counter as module
from carteiro.tickets.consume.counter import NOTHING, TIME_TO_LIVE_S, RetryCounter
from carteiro.tickets.consume.ports import LastError, TicketStanding
from support.cut_proxy import a_cut_proxy
from support.redis_server import RedisServer, a_redis
from support.services import HOST, free_port
from support.stopping import stopped

pytestmark = pytest.mark.servers

FOR_EVER = 3600.0  # seconds; the time limit of the tests ends such a wait
PLACE = "execution.tickets|0|41"


@pytest.fixture(scope="module")
def _running() -> Iterator[RedisServer]:
    with a_redis() as server:
        yield server


@pytest.fixture
def server(_running: RedisServer) -> RedisServer:
    """A server without keys."""
    _running.flush()
    return _running


@pytest.fixture
def mortal() -> Iterator[RedisServer]:
    """A server that a test may stop and kill."""
    with a_redis() as server:
        yield server


class Watched:
    """A counter, and whether Redis was last said to be up."""

    def __init__(self, url: str, **options: Any) -> None:
        self.changes: list[bool] = []
        self._back = asyncio.Event()
        self.counter = RetryCounter(url, on_change=self._heard, **options)

    async def is_back(self) -> None:
        """Wait for it."""
        await self._back.wait()

    def will_not_wait(self) -> None:
        """From now on a question to Redis without an answer hangs."""
        self.counter._patience_s = FOR_EVER

    def _heard(self, up: bool) -> None:
        self.changes.append(up)
        (self._back.set if up else self._back.clear)()


@asynccontextmanager
async def watched(url: str, **options: Any) -> AsyncIterator[Watched]:
    """A counter, until the end of the test."""
    made = Watched(url, **options)
    try:
        yield made
    finally:
        made.counter._patience_s = module.PATIENCE.total_seconds()
        await made.counter.close()


def held(server: RedisServer) -> dict[str, str]:
    """All that Redis has; a key without an end fails the test."""
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        keys = sorted(client.keys("*"))
        assert all(0 < client.ttl(key) <= TIME_TO_LIVE_S for key in keys)
        return {key: client.get(key) for key in keys if not key.startswith("ticket:counted_up_to:")}


async def count_one(counter: RetryCounter, id: str, at_least: int) -> int:
    """Count one failure, alone."""
    [count] = await counter.failed([(id, at_least, PLACE)])
    return count


# --- Redis is there ---------------------------------------------------------------------------


async def test_failures_are_counted_under_the_name_of_the_seed(server: RedisServer) -> None:
    """``ticket:retry_count:{ticket_id}`` has one more after each failure, and seven days."""
    async with watched(server.url) as it:
        counts = [await count_one(it.counter, "a", each) for each in (1, 2, 3)]

        assert counts == [1, 2, 3]
        assert held(server) == {"ticket:retry_count:a": "3"}
        assert await it.counter.look(["a", "b"]) == [TicketStanding(3, ""), NOTHING]


async def test_partition_is_known_up_to_the_last_record_that_was_counted_or_ended(
    server: RedisServer,
) -> None:
    """The next owner asks about no record beyond it; a record before it does not take it back."""
    async with watched(server.url) as it:
        parts = [("t", 0), ("t", 1), ("t", 2)]
        await it.counter.failed(
            [("a", 1, "t|0|7"), ("b", 1, "t|0|1234567890123"), ("c", 1, "t|1|5")]
        )
        await it.counter.failed([("d", 1, "t|0|9")])
        await it.counter.ended([("c", "t|1|8")])

        assert await it.counter.counted_up_to(parts) == [1234567890124, 9, 0]
        assert await it.counter.counted_up_to([]) == []


async def test_place_that_is_not_a_number_is_not_known(server: RedisServer) -> None:
    """Then each ticket is looked at."""
    async with watched(server.url) as it:
        with redis.Redis.from_url(server.url) as client:
            client.set("ticket:counted_up_to:t|0", "far")

        assert await it.counter.counted_up_to([("t", 0)]) is None


async def test_failures_counted_by_another_worker_count(server: RedisServer) -> None:
    """Two workers that had the ticket in turn count as one."""
    async with watched(server.url) as one, watched(server.url) as other:
        await count_one(one.counter, "a", 1)

        assert await count_one(other.counter, "a", 1) == 2


async def test_count_is_never_below_the_count_of_the_commits(server: RedisServer) -> None:
    """The counts of the commits are written back."""
    async with watched(server.url) as it:
        assert await count_one(it.counter, "a", 3) == 3
        assert await count_one(it.counter, "a", 2) == 4


async def test_an_end_moves_the_count_to_the_mark_in_one_transaction(server: RedisServer) -> None:
    """A crash in between would run a ticket again, from its first attempt."""
    async with watched(server.url) as it:
        await count_one(it.counter, "a", 3)
        with redis.Redis.from_url(server.url) as client:
            client.config_resetstat()

            await it.counter.ended([("a", PLACE)])

            assert client.info("commandstats")["cmdstat_exec"]["calls"] == 1
        assert held(server) == {"ticket:dlq_done:a": PLACE}
        assert await it.counter.look(["a"]) == [TicketStanding(0, PLACE)]


async def test_a_batch_is_looked_at_in_one_question(server: RedisServer) -> None:
    """The happy path costs no round trip per ticket."""
    ids = [f"ticket-{number}" for number in range(500)]
    async with watched(server.url) as it:
        await it.counter.look(["warm"])
        with redis.Redis.from_url(server.url) as client:
            client.config_resetstat()

            standings = await it.counter.look(ids)

            asked = {
                key for key in client.info("commandstats") if key != "cmdstat_config|resetstat"
            }
            assert asked == {"cmdstat_mget"}
            assert client.info("commandstats")["cmdstat_mget"]["calls"] == 1
        assert standings == [NOTHING] * 500
        assert await it.counter.look([]) == []


@pytest.mark.parametrize("junk", ["abc", "-5", "1.5", "inf", "9" * 30, "", "٣", b"\xff\xfe"])
async def test_value_that_is_not_a_count_counts_as_zero(
    server: RedisServer, junk: str | bytes
) -> None:
    """Others may write under any name."""
    with redis.Redis.from_url(server.url) as client:
        client.set("ticket:retry_count:a", junk)
    async with watched(server.url) as it:
        assert await it.counter.look(["a"]) == [NOTHING]
        assert await count_one(it.counter, "a", 1) == 1

        assert it.changes == []
        assert held(server) == {"ticket:retry_count:a": "1"}


async def test_key_of_another_type_is_not_an_outage(server: RedisServer) -> None:
    """One hostile key must not keep all others from being counted."""
    with redis.Redis.from_url(server.url) as client:
        client.hset("ticket:retry_count:a", "field", "1")
        client.hset("ticket:dlq_done:a", "field", "1")
    async with watched(server.url) as it:
        assert await it.counter.look(["a"]) == [NOTHING]
        assert await count_one(it.counter, "a", 2) == 2
        await it.counter.ended([("a", PLACE)])

        assert it.changes == []
        assert held(server) == {"ticket:dlq_done:a": PLACE}


async def test_script_is_loaded_again_on_a_server_without_it(server: RedisServer) -> None:
    """A failover leads to one that never heard of it."""
    async with watched(server.url) as it:
        await count_one(it.counter, "a", 1)
        with redis.Redis.from_url(server.url) as client:
            client.script_flush()

        assert await count_one(it.counter, "a", 2) == 2
        assert it.changes == []


async def test_many_at_once_are_all_counted(server: RedisServer) -> None:
    """There are fewer connections than tickets."""
    ids = [f"ticket-{number}" for number in range(200)]
    async with watched(server.url, patience=timedelta(minutes=1)) as it:
        counts = await asyncio.gather(*(count_one(it.counter, id, 1) for id in ids))

        assert (counts, it.changes) == ([1] * 200, [])
        assert len(held(server)) == 200


async def test_busy_event_loop_is_not_an_outage(server: RedisServer) -> None:
    """The answer lay there all the time, only we did not look."""
    async with watched(server.url, patience=timedelta(milliseconds=50)) as it:
        await count_one(it.counter, "a", 1)
        looking = asyncio.create_task(it.counter.look(["a"]))
        await asyncio.sleep(0)  # it is asked

        time.sleep(0.2)  # noqa: ASYNC251 - a handler that does not give way, for longer than the patience

        assert await looking == [TicketStanding(1, "")]
        assert it.changes == []


# --- Redis is down ----------------------------------------------------------------------------


async def live_a_life(it: Watched) -> None:
    """One ticket dies, one succeeds at its second attempt, one is tried again later."""
    counter = it.counter
    assert [await count_one(counter, "dies", each) for each in (1, 2, 3)] == [1, 2, 3]
    assert await counter.look(["dies", "new"]) == [TicketStanding(3, ""), NOTHING]
    await counter.ended([("dies", PLACE)])
    assert await count_one(counter, "succeeds", 1) == 1
    await counter.ended([("succeeds", PLACE)])
    assert await count_one(counter, "waits", 2) == 2
    known = await counter.look(["dies", "succeeds", "waits"])
    assert known == [TicketStanding(0, PLACE), TicketStanding(0, PLACE), TicketStanding(2, "")]


OF_A_LIFE = {
    "ticket:dlq_done:dies": PLACE,
    "ticket:dlq_done:succeeds": PLACE,
    "ticket:retry_count:waits": "2",
}


async def test_a_life_without_redis_is_written_when_it_comes(mortal: RedisServer) -> None:
    """Nothing waits for it, nothing is lost, and nothing is retried for ever."""
    mortal.kill()
    async with watched(mortal.url) as it:
        await it.counter.look(["any"])
        it.will_not_wait()

        await live_a_life(it)

        assert (it.changes, it.counter.is_up) == ([False], False)
        mortal.start()
        await it.is_back()
        assert held(mortal) == OF_A_LIFE
        assert it.counter.is_up


async def test_a_redis_that_is_stopped_is_not_waited_for_twice(mortal: RedisServer) -> None:
    """It takes connections and never answers; a failure sent before is not counted twice."""
    async with watched(mortal.url) as it:
        await count_one(it.counter, "dies", 1)
        with stopped(mortal.pid):
            assert await count_one(it.counter, "waits", 1) == 1
            it.will_not_wait()

            await live_a_life(it)
        await it.is_back()

        assert it.changes == [False, True]
        assert held(mortal) == OF_A_LIFE


async def test_a_network_that_swallows_everything_is_left_when_it_heals(
    server: RedisServer,
) -> None:
    """Connections that a firewall forgot are not used again."""
    async with a_cut_proxy(server.port) as proxy, watched(f"redis://{HOST}:{proxy.port}/0") as it:
        await asyncio.gather(*(count_one(it.counter, "waits", 1) for _ in range(5)))
        proxy.freeze()
        proxy.stall()
        assert await it.counter.look(["waits"]) == [NOTHING]
        it.will_not_wait()

        await live_a_life(it)

        proxy.flow()
        await it.is_back()
        assert held(server) == OF_A_LIFE | {"ticket:retry_count:waits": "5"}


async def test_a_redis_that_is_killed_and_started_goes_on(mortal: RedisServer) -> None:
    """Without its keys, what is known elsewhere counts."""
    async with watched(mortal.url) as it:
        await count_one(it.counter, "a", 1)
        mortal.kill()
        assert await count_one(it.counter, "a", 2) == 2
        mortal.start(empty=True)
        await it.is_back()

        assert await count_one(it.counter, "a", 3) == 3
        assert held(mortal) == {"ticket:retry_count:a": "3"}


async def test_a_count_from_before_a_burial_is_void(mortal: RedisServer) -> None:
    """A ticket that died and was redriven while Redis was down has fresh attempts."""
    async with watched(mortal.url) as it:
        for failures in (1, 2, 3):
            await count_one(it.counter, "a", failures)
        mortal.stop()
        await it.counter.ended([("a", PLACE)])
        assert await count_one(it.counter, "a", 1) == 1
        mortal.start()
        await it.is_back()

        assert held(mortal) == {"ticket:dlq_done:a": PLACE, "ticket:retry_count:a": "1"}


async def test_full_redis_counts_as_unreachable(mortal: RedisServer) -> None:
    """It refuses to write; what is owed is written when there is room."""
    async with watched(mortal.url) as it:
        with redis.Redis.from_url(mortal.url) as client:
            client.config_set("maxmemory", "1")
            assert await count_one(it.counter, "a", 1) == 1
            assert it.changes == [False]

            client.config_set("maxmemory", "0")
        await it.is_back()

        assert held(mortal) == {"ticket:retry_count:a": "1"}


async def test_redis_that_refuses_the_password_counts_as_unreachable(server: RedisServer) -> None:
    """A wrong password stops no ticket."""
    async with watched(server.url.replace("://", "://someone:wrong@")) as it:
        assert await count_one(it.counter, "a", 1) == 1
        assert it.changes == [False]


async def test_counter_without_an_address_is_off_and_silent() -> None:
    """That is what was asked for."""
    async with watched("") as it:
        assert await count_one(it.counter, "a", 2) == 2
        await it.counter.ended([("a", PLACE)])

        assert await it.counter.look(["a"]) == [NOTHING]
        assert (it.counter.is_up, it.changes, it.counter._owed) == (False, [], {})


async def test_an_address_that_is_none_is_refused_at_once() -> None:
    """It would be down for ever."""
    with pytest.raises(ConfigError):
        RetryCounter("http://127.0.0.1/")


async def test_debts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage of days must not fill the memory: the oldest are forgotten."""
    monkeypatch.setattr(module, "MOST_OWED", 3)
    async with watched(f"redis://{HOST}:{free_port()}/0") as it:
        for id in ("a", "b", "c", "a", "d"):
            await count_one(it.counter, id, 1)

        known = await it.counter.look(["a", "b", "c", "d"])
        assert [each.failures for each in known] == [1, 0, 1, 1]


async def test_more_is_written_than_goes_at_once(
    mortal: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long outage leaves many debts."""
    monkeypatch.setattr(module, "_PAID_AT_ONCE", 10)
    mortal.kill()
    async with watched(mortal.url) as it:
        for number in range(95):
            await count_one(it.counter, f"ticket-{number}", 1)
        mortal.start()
        await it.is_back()

        assert (len(held(mortal)), it.counter._owed) == (95, {})


async def test_closing_writes_owed_counts(
    mortal: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that stops right after an outage leaves nothing behind."""
    monkeypatch.setattr(module, "_FIRST_PAUSE_S", FOR_EVER)
    mortal.kill()
    async with watched(mortal.url) as it:
        await count_one(it.counter, "a", 2)
        mortal.start()

    assert held(mortal) == {"ticket:retry_count:a": "2"}
    async with watched(mortal.url) as next_owner:
        assert await next_owner.counter.counted_up_to([("execution.tickets", 0)]) == [42]


# --- what held tickets died of ----------------------------------------------------------------

DIED_OF = LastError(
    "permanent_error", "Permanent", "a build needs a commit: é", 1, 1_760_000_000_000
)


async def test_cause_of_a_held_ticket_is_stored_until_it_has_ended(server: RedisServer) -> None:
    """The next worker finds it; it goes with the count."""
    async with watched(server.url) as one, watched(server.url) as other:
        await count_one(one.counter, "a", 1)
        await one.counter.keep_errors([("a", DIED_OF)])

        assert await other.counter.kept_errors(["a", "b"]) == [DIED_OF, None]
        assert held(server)["ticket:retry_count:a"] == "1"
        await other.counter.ended([("a", PLACE)])
        assert held(server) == {"ticket:dlq_done:a": PLACE}


async def test_foreign_value_is_not_an_error(server: RedisServer) -> None:
    """Whatever it is."""
    with redis.Redis.from_url(server.url) as client:
        for id, said in (("a", "nonsense"), ("b", "[1]"), ("c", '{"reason": "x"}')):
            client.set(f"ticket:held_error:{id}", said, ex=60)
    async with watched(server.url) as it:
        assert await it.counter.kept_errors(["a", "b", "c"]) == [None] * 3


async def test_redrive_deletes_the_cause_of_death(server: RedisServer) -> None:
    """It begins anew."""
    async with watched(server.url) as it:
        await it.counter.keep_errors([("a", DIED_OF)])
        await it.counter.forget(["a"])
        assert held(server) == {}


async def test_an_error_that_could_not_be_written_is_owed(mortal: RedisServer) -> None:
    """It is known here meanwhile, and Redis has it when it is back."""
    async with watched(mortal.url) as it:
        mortal.stop()
        await it.counter.keep_errors([("a", DIED_OF)])
        assert await it.counter.kept_errors(["a"]) == [DIED_OF]
        assert await count_one(it.counter, "a", 2) == 2
        assert await it.counter.kept_errors(["a"]) == [DIED_OF]
        mortal.start()
        await it.is_back()
        assert await it.counter.kept_errors(["a"]) == [DIED_OF]
        assert held(mortal)["ticket:retry_count:a"] == "2"

"""Properties of the queue in Redis: its size, its arithmetic, its addresses, and its wait for the server."""

import asyncio
import io
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import takewhile

import orjson
import pytest
import redis
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from carteiro.errors import ConfigError, StoreUnavailable
from carteiro.model import EMAIL, TenantId
from carteiro.observability import log
from carteiro.policy.fairness import rescaled, stride
from carteiro.ports.queue import QueueEntry, QueueHalf, Share
from carteiro.stores.redis import RedisOptions, open_redis, wake
from carteiro.stores.redis.server import Server
from support.builders import ACME, BRASA, TASK, a_claim_id, an_id
from support.clock import StoreClock
from support.cut_proxy import a_cut_proxy
from support.redis_server import RedisServer, a_redis
from support.services import HOST, free_port

pytestmark = pytest.mark.servers

P = "{email:send:dlq}"
LEASE = timedelta(seconds=30)
PATIENT = timedelta(seconds=20)


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """A server for this module alone."""
    with a_redis() as running:
        yield running


@pytest.fixture
def client(server: RedisServer) -> Iterator["redis.Redis"]:
    """A direct client of the keys, which are all deleted before."""
    with redis.Redis.from_url(server.url, decode_responses=True) as opened:
        opened.flushall()
        yield opened


@asynccontextmanager
async def _queue(server: RedisServer, clock: StoreClock) -> AsyncIterator[QueueHalf]:
    options = RedisOptions(clock=clock, patience=PATIENT)
    async with open_redis(server.url, options) as half:
        await half.desk.share([_share(ACME), _share(BRASA)])
        await half.desk.founded()
        yield half


def _share(tenant: TenantId, weight: float = 1.0) -> Share:
    return Share(tenant, stride(weight), None, None, is_held=False)


def _entries(number: int, clock: StoreClock, tenant: TenantId = ACME) -> list[QueueEntry]:
    now = clock.now_ms
    return [(an_id(), EMAIL, tenant, 5, now, now) for _ in range(number)]


async def _claimed(half: QueueHalf, limit: int = 100) -> list[TenantId]:
    tickets = await half.queue.claim(claim_id=a_claim_id(), kinds=[EMAIL], limit=limit, lease=LEASE)
    assert tickets is not None
    return [job[2] for job in tickets.jobs]


@pytest.mark.parametrize("wait_ms", [0, 60_000])
async def test_waiting_job_takes_at_most_half_a_kilobyte(
    wait_ms: int, server: RedisServer, client: "redis.Redis"
) -> None:
    """Ready or scheduled."""
    clock, number = StoreClock(), 20_000
    async with _queue(server, clock) as half:
        before = client.info("memory")["used_memory"]
        due = clock.now_ms + wait_ms
        await half.queue.put([(an_id(), EMAIL, ACME, 5, due, due) for _ in range(number)])

        each = (client.info("memory")["used_memory"] - before) / number

    assert each <= 512


async def test_dead_letter_takes_at_most_a_kilobyte_and_a_half(
    server: RedisServer, client: "redis.Redis"
) -> None:
    """The index has ids and times; the rest is in the ledger."""
    clock, number = StoreClock(), 20_000
    async with _queue(server, clock) as half:
        before = client.info("memory")["used_memory"]
        await half.desk.bury({an_id(): clock.now_ms + offset for offset in range(number)})

        each = (client.info("memory")["used_memory"] - before) / number

    assert each <= 1536


async def test_put_of_a_known_job_changes_nothing(
    server: RedisServer, client: "redis.Redis"
) -> None:
    """In any position; only a job that waits for its due time takes the new one."""
    clock = StoreClock()
    async with _queue(server, clock) as half:
        [entry] = _entries(1, clock)
        first = await half.queue.put([entry, entry])
        await _claimed(half)
        again = await half.queue.put([entry])

        assert (first, again) == (1, 0)
        assert await _claimed(half) == []
        assert client.hlen(f"{P}:leases") == 1


async def test_put_of_known_jobs_wakes_nobody(server: RedisServer, client: "redis.Redis") -> None:
    """The relay puts all jobs again from time to time: idle workers would look for work in vain."""
    clock = StoreClock()
    async with _queue(server, clock) as half:
        entries = _entries(3, clock)
        with client.pubsub(ignore_subscribe_messages=True) as line:  # type: ignore[no-untyped-call] # the library has no types here
            line.subscribe(f"{P}:bell", "end")
            for _ in range(3):
                await half.queue.put(entries)
            client.publish("end", "")
            heard = takewhile(lambda each: each["channel"] != "end", line.listen())

            assert len([*heard]) == 1


async def test_put_wakes_those_who_wait_for_its_kind(server: RedisServer) -> None:
    """Pools of other kinds would look for work in vain; a list of several kinds wakes all elsewhere."""
    clock = StoreClock()
    async with _queue(server, clock) as half, _queue(server, clock) as elsewhere:
        while await half.wake.wait(timedelta(seconds=0.1), since=half.wake.rings()):
            pass  # what the opening rang
        before = half.wake.rings()
        mails = _entries(4, clock)
        await elsewhere.queue.put(mails[:2])
        hears_its_own = await half.wake.wait(PATIENT, since=before, kinds=[EMAIL])
        hears_others = await half.wake.wait(timedelta(0), since=before, kinds=["other"])
        task = (mails[3][0], TASK, *mails[3][2:])
        await elsewhere.queue.put([mails[2], task])
        hears_a_mixed_list = await half.wake.wait(PATIENT, since=before, kinds=["other"])

    assert (hears_its_own, hears_others, hears_a_mixed_list) == (True, False, True)


async def test_put_wakes_its_own_process_at_once_and_once(
    server: RedisServer, client: "redis.Redis"
) -> None:
    """A claim that follows is behind the jobs, on the same connection: the bell need not come back from the server."""
    clock = StoreClock()
    async with _queue(server, clock) as half:
        while await half.wake.wait(timedelta(seconds=0.1), since=half.wake.rings()):
            pass  # what the opening rang
        before = half.wake.rings()
        putting = asyncio.create_task(half.queue.put(_entries(1, clock)))
        await half.wake.wait(PATIENT, since=before, kinds=[EMAIL])
        is_answered = putting.done()
        claimed = await half.queue.claim(claim_id=a_claim_id(), kinds=[EMAIL], limit=5, lease=LEASE)
        await putting
        client.publish(f"{P}:bell", "end\t")
        await half.wake.wait(PATIENT, since=before, kinds=["end"])

        assert claimed is not None
        assert (is_answered, len(claimed.jobs), half.wake.rings() - before) == (False, 1, 2)


async def test_waiting_job_takes_an_earlier_time(
    server: RedisServer, client: "redis.Redis"
) -> None:
    """A message may have been redriven while the queue was down."""
    clock = StoreClock()
    later = clock.now_ms + 3_600_000
    async with _queue(server, clock) as half:
        message = an_id()
        await half.queue.put([(message, EMAIL, ACME, 5, later, later)])
        await half.queue.put([(message, EMAIL, ACME, 5, clock.now_ms, clock.now_ms)])

        assert await _claimed(half) == [ACME]
        assert client.hlen(f"{P}:jobs") == 1


async def test_virtual_time_is_reduced_before_it_is_inexact(
    server: RedisServer, client: "redis.Redis"
) -> None:
    """The differences stay."""
    clock, far = StoreClock(), 1 << 52
    async with _queue(server, clock) as half:
        await half.queue.put([*_entries(9, clock, ACME), *_entries(9, clock, BRASA)])
        client.hset(f"{P}:clock:{EMAIL}", "v", far)
        order = [each for _ in range(6) for each in await _claimed(half, limit=3)]

        v = int(client.hget(f"{P}:clock:{EMAIL}", "v") or 0)

    assert order == 3 * [*3 * [ACME], *3 * [BRASA]]
    assert v < far


_SEAT = """#!lua
redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack({tonumber(ARGV[2]), 0, 0, 0, 0}))
"""
_VIRTUAL_TIME = """#!lua
return cmsgpack.unpack(redis.call('HGET', KEYS[1], ARGV[1]))[1]
"""


@given(
    ahead=st.integers(0, 3 * 10**9),
    v=st.integers(0, 10**15),
    weights=st.tuples(st.floats(0.001, 1000), st.floats(0.001, 1000)),
)
@example(ahead=3 * 10**9, v=10**15, weights=(0.001, 0.0010001))
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_change_of_weight_rescales_as_in_every_store(
    ahead: int, v: int, weights: tuple[float, float], server: RedisServer, client: "redis.Redis"
) -> None:
    """Whole numbers, although a product of two strides is more than a double holds exactly."""
    clock, old, new = StoreClock(), *map(stride, weights)
    client.flushall()
    async with _queue(server, clock) as half:
        await half.desk.share([_share(ACME, weights[0])])
        await half.queue.put(_entries(1, clock))
        client.hset(f"{P}:clock:{EMAIL}", "v", v)
        client.eval(_SEAT, 1, f"{P}:seats:{EMAIL}", ACME, v + ahead)

        await half.desk.share([_share(ACME, weights[1])])

    vt = client.eval(_VIRTUAL_TIME, 1, f"{P}:seats:{EMAIL}", ACME)
    assert vt == rescaled(v + ahead, v, old=old, new=new)


async def test_empty_queue_hands_out_nothing_before_it_is_founded(
    server: RedisServer, client: "redis.Redis"
) -> None:
    """It does not know the pauses; nor can it confirm a claim."""
    clock = StoreClock()
    async with _queue(server, clock) as half:
        client.flushall()
        await half.queue.put(_entries(1, clock))

        tickets = await half.queue.claim(claim_id=a_claim_id(), kinds=[EMAIL], limit=1, lease=LEASE)

        assert tickets is None
        assert await half.queue.leased([an_id()]) == [None]
        assert not await half.desk.is_complete()


async def test_put_into_another_queue_completes_nothing(
    server: RedisServer, client: "redis.Redis"
) -> None:
    """A wipe in the middle of putting everything back is noticed."""
    async with _queue(server, StoreClock()) as half:
        token = await half.desk.founded()
        client.flushall()
        await half.desk.founded()

        await half.desk.completed(token)
        is_complete_too_early = await half.desk.is_complete()
        await half.desk.completed(await half.desk.founded())

        assert not is_complete_too_early
        assert await half.desk.is_complete()


async def test_unreachable_server_is_retried_and_logged() -> None:
    """Callers fail at once; the log has the outage and its end."""
    lines = io.BytesIO()
    log.configure("info", lines)
    with a_redis() as own:
        async with open_redis(own.url, RedisOptions(patience=timedelta(seconds=5))) as half:
            await half.desk.founded()
            own.stop()
            for _ in range(3):
                with pytest.raises(StoreUnavailable, match="unreachable"):
                    await half.queue.reap(limit=1)
            own.start()
            async with asyncio.timeout(20):
                while not await _is_there(half):
                    await asyncio.sleep(0.02)
    log.configure("off")

    told = [orjson.loads(line) for line in lines.getvalue().splitlines()]
    assert [line["event"] for line in told if line["event"].startswith("queue.")][
        -1
    ] == "queue.back"
    assert half.queue.outages >= 1


async def _is_there(half: QueueHalf) -> bool:
    try:
        await half.queue.reap(limit=1)
    except StoreUnavailable:
        return False
    return True


async def test_cancelled_caller_goes_no_further(server: RedisServer) -> None:
    """At any moment of an operation: otherwise a stop would hang."""

    async def ask_and_wait(half: QueueHalf) -> None:
        await half.queue.reap(limit=1)
        await asyncio.Event().wait()

    unended = []
    async with open_redis(server.url, RedisOptions(patience=PATIENT)) as half:
        await half.queue.reap(limit=1)
        for moment in range(30):
            asking = asyncio.create_task(ask_and_wait(half))
            for _ in range(moment):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking], timeout=1)
            if not asking.done():
                unended.append(moment)
                asking.cancel()

    assert unended == []


async def test_silent_bell_is_given_up(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing comes and nothing ends, as when a firewall forgets the connection: a new one replaces it."""
    monkeypatch.setattr(wake, "_CHECK_EVERY_S", 0.2)
    async with a_cut_proxy(server.port) as proxy:
        address = f"redis://{HOST}:{proxy.port}/0"
        async with open_redis(address, RedisOptions(patience=PATIENT)) as half:
            before = half.wake.rings()
            rang_by_itself = await half.wake.wait(timedelta(seconds=0.7), since=before)
            proxy.freeze()
            heard_again = await half.wake.wait(PATIENT, since=before)
            before = half.wake.rings()
            with redis.Redis.from_url(server.url) as client:
                client.publish(f"{P}:bell", "")
            heard_the_bell = await half.wake.wait(PATIENT, since=before)

    assert (rang_by_itself, heard_again, heard_the_bell) == (False, True, True)


async def test_missing_server_is_waited_for() -> None:
    """Opening does not fail: messages are accepted meanwhile."""
    address = f"redis://{HOST}:{free_port()}/0"
    async with open_redis(address, RedisOptions()) as half:
        with pytest.raises(StoreUnavailable):
            await half.queue.put(_entries(1, StoreClock()))


@pytest.mark.parametrize(
    "address", ["redis+sentinel://host:26379/", "redis://host:port/0", "http://host"]
)
async def test_wrong_address_is_refused(address: str) -> None:
    """Before anything is connected."""
    with pytest.raises(ConfigError):
        Server(address, RedisOptions())


async def test_password_is_not_shown() -> None:
    """Addresses are part of logs and errors."""
    address = f"redis://user:secret-1@{HOST}:{free_port()}/0"
    async with open_redis(address, RedisOptions()) as half:
        with pytest.raises(StoreUnavailable) as raised:
            await half.queue.reap(limit=1)

    assert "secret-1" not in str(raised.value)

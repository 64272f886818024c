"""Leases in Redis, by group: one record for the jobs of a tenant in a claim, with one end."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
import redis

from carteiro.model import EMAIL, ClaimId, Lease, MessageId, TenantId
from carteiro.policy.fairness import stride
from carteiro.ports.queue import QueueHalf, Share, Tickets
from carteiro.stores.redis import RedisOptions, open_redis
from support.builders import ACME, BRASA, a_claim_id, an_id
from support.clock import MILLISECOND, StoreClock
from support.redis_server import RedisServer, a_redis

pytestmark = pytest.mark.servers

P = "{email:send:dlq}"
LEASE = timedelta(seconds=30)
OF_LEASES = ("leases", "groups", "left", "held", "ends", "claims")


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
async def _queue(
    server: RedisServer, clock: StoreClock, *tenants: TenantId, jobs: int
) -> AsyncIterator[QueueHalf]:
    """A queue with this many jobs of each tenant."""
    options = RedisOptions(clock=clock, patience=timedelta(seconds=20))
    async with open_redis(server.url, options) as half:
        shares = [Share(each, stride(1.0), None, None, is_held=False) for each in tenants]
        await half.desk.share(shares)
        await half.desk.founded()
        now = clock.now_ms
        await half.queue.put(
            [(an_id(), EMAIL, each, 5, now, now) for each in tenants for _ in range(jobs)]
        )
        yield half


async def _claim(half: QueueHalf, claim: ClaimId, *, limit: int = 100, ahead: int = 0) -> Tickets:
    asked = {"kinds": [EMAIL], "limit": limit, "ahead": ahead, "lease": LEASE}
    tickets = await half.queue.claim(claim_id=claim, **asked)  # type: ignore[arg-type]
    assert tickets is not None
    return tickets


async def _claimed(half: QueueHalf, claim: ClaimId) -> list[MessageId]:
    return [job[0] for job in (await _claim(half, claim)).jobs]


def _kept(client: "redis.Redis") -> list[str]:
    names = [f"{P}:{each}" for each in OF_LEASES]
    return [
        *(each for each in names if client.exists(each)),
        *map(str, client.keys(f"{P}:leased:*")),
    ]


async def test_claim_is_one_record_for_each_tenant(
    server: RedisServer, client: "redis.Redis"
) -> None:
    """Whatever number of jobs it has; the last end removes it, and nothing stays behind."""
    async with _queue(server, StoreClock(), ACME, BRASA, jobs=30) as half:
        ids = await _claimed(half, a_claim_id())
        records = client.zcard(f"{P}:ends")
        await half.queue.settle(ids[:-1])
        left = client.zcard(f"{P}:ends")
        await half.queue.settle(ids[-1:])

    assert len(ids) == 60
    assert (records, left) == (2, 1)
    assert _kept(client) == []


async def test_leases_are_a_table(server: RedisServer, client: "redis.Redis") -> None:
    """A few hundred leases would be a list, which is searched from the start for each of them."""
    async with _queue(server, StoreClock(), ACME, jobs=5) as half:
        await _claimed(half, a_claim_id())

    assert client.object("encoding", f"{P}:leases") == "hashtable"
    assert client.hlen(f"{P}:leases") == 5


async def test_hold_of_all_jobs_moves_the_records_alone(
    server: RedisServer, client: "redis.Redis"
) -> None:
    """No record of a job is written."""
    clock, claim = StoreClock(), a_claim_id()
    async with _queue(server, clock, ACME, BRASA, jobs=30) as half:
        ids = await _claimed(half, claim)
        client.config_resetstat()
        left = await half.queue.hold([(Lease(each, claim), 40_000) for each in ids])
        told = client.info("commandstats")
        later = client.zcount(f"{P}:ends", clock.now_ms + 40_000, clock.now_ms + 40_000)

    assert left == [30_000] * 60
    assert later == 2
    assert told["cmdstat_hset"]["calls"] == 1, "the mark that the groups are held"
    assert told["cmdstat_zadd"]["calls"] <= 5


async def test_jobs_that_are_held_alone_end_alone(
    server: RedisServer, client: "redis.Redis"
) -> None:
    """The others of their claim keep its end, and the hold is set only once."""
    clock, claim = StoreClock(), a_claim_id()
    async with _queue(server, clock, ACME, jobs=4) as half:
        ids = await _claimed(half, claim)
        held = [Lease(each, claim) for each in ids[:2]]
        await half.queue.hold([(each, 1_000) for each in held])
        again = await half.queue.hold([(each, 9_000) for each in held])
        clock.advance(1_001 * MILLISECOND)
        taken_over = await _claimed(half, a_claim_id())
        standing = await half.queue.standing([Lease(each, claim) for each in ids])
        await half.queue.settle(ids)

    assert again == [1_000, 1_000]
    assert sorted(taken_over) == sorted(ids[:2])
    assert standing == [False, False, True, True]
    assert _kept(client) == []


async def test_claim_half_taken_over_keeps_the_other_half(
    server: RedisServer, client: "redis.Redis"
) -> None:
    """A job that was given back counts as claimed; the rest can still be extended, and given back."""
    clock, claim = StoreClock(), a_claim_id()
    async with _queue(server, clock, ACME, jobs=4) as half:
        ids = sorted(await _claimed(half, claim))
        clock.advance(LEASE)
        reaped = await half.queue.reap(limit=2)
        leases = [Lease(each, claim) for each in ids]
        extended = await half.queue.extend(leases, lease=LEASE)
        await half.queue.release(leases, wait=timedelta(0))
        jobs = (await _claim(half, a_claim_id())).jobs

    assert reaped == 2
    assert extended == [False, False, True, True]
    assert {job[0]: job[3] for job in jobs} == dict(zip(ids, [2, 2, 1, 1], strict=True))


async def test_slow_job_keeps_its_lease_after_the_others_ended(
    server: RedisServer, client: "redis.Redis"
) -> None:
    """As long as its claim is extended, nobody else gets it."""
    clock, claim = StoreClock(), a_claim_id()
    async with _queue(server, clock, ACME, jobs=50) as half:
        *quick, slow = await _claimed(half, claim)
        await half.queue.settle(quick)
        for _ in range(3):
            clock.advance(LEASE / 2)
            assert await half.queue.extend([Lease(slow, claim)], lease=LEASE) == [True]
            assert await _claimed(half, a_claim_id()) == []
        found = await half.queue.leases_of([claim])

    assert found == [Lease(slow, claim)]


async def test_jobs_are_claimed_ahead_of_the_limit(
    server: RedisServer, client: "redis.Redis"
) -> None:
    """Up to the number that was asked for."""
    async with _queue(server, StoreClock(), ACME, BRASA, jobs=20) as half:
        first = await _claim(half, a_claim_id(), limit=4, ahead=6)
        second = await _claim(half, a_claim_id(), limit=4)

    assert (len(first.jobs), len(second.jobs)) == (10, 4)


async def test_job_that_ends_twice_in_a_list_counts_once(
    server: RedisServer, client: "redis.Redis"
) -> None:
    """The others of its claim still expire, and nothing stays behind."""
    clock, claim = StoreClock(), a_claim_id()
    async with _queue(server, clock, ACME, jobs=3) as half:
        first, *others = await _claimed(half, claim)
        await half.queue.settle([first, first])
        await half.queue.settle(others[:1])
        clock.advance(LEASE)
        again = await _claimed(half, a_claim_id())
        await half.queue.settle(again)

    assert again == others[1:]
    assert _kept(client) == []


async def test_more_jobs_than_one_command_takes(server: RedisServer, client: "redis.Redis") -> None:
    """Lists of any length: claimed, held, expired and settled."""
    clock, claim = StoreClock(), a_claim_id()
    async with _queue(server, clock, ACME, jobs=3_000) as half:
        ids = [job[0] for job in (await _claim(half, claim, limit=3_000)).jobs]
        await half.queue.hold([(Lease(each, claim), 1_000) for each in ids])
        clock.advance(LEASE)
        reaped = await half.queue.reap(limit=3_000)
        await half.queue.settle(ids)

    assert (len(ids), reaped) == (3_000, 3_000)
    assert _kept(client) == []

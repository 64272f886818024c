"""A queue that is wiped, killed, restored or full under a running worker: nothing lost, nothing sent twice."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import pytest
import redis

from carteiro.engine.worker import Lengths, Worker
from carteiro.errors import StoreUnavailable
from carteiro.jobs.kind import Kind, Pool
from carteiro.maintenance.relay import Relay, relay
from carteiro.model import EMAIL, Begun, Lease, LeasedJob, MessageId, Outcome, State, Taken
from carteiro.path.confirm import confirm
from carteiro.policy.retry import PRESETS
from carteiro.ports import Backend, Handover, Parcel, Store
from carteiro.ports.ledger import QUEUE, LedgerHalf
from carteiro.stores.paired import Paired
from carteiro.stores.paired_ports import Pair, open_paired
from carteiro.stores.postgres import PostgresOptions, open_postgres_ledger
from carteiro.stores.redis import RedisOptions, open_redis
from carteiro.stores.sqlite import open_sqlite_ledger
from support.builders import ACME, BRASA, a_tenant, an_id, dead, messages, sent, tenants_named
from support.redis_server import RedisServer, a_redis
from support.set_ups import postgres_url
from support.steps import accepted, attempted, claimed, declare, settled
from support.working import always

pytestmark = pytest.mark.servers

PATIENCE_S = 60
ROUNDS, PER_ROUND = 12, 10
SHORT = timedelta(milliseconds=500)
SOON = timedelta(milliseconds=50)
CONTENT = '{"to":"ana@example.com","subject":"Oi","text":"Oi"}'


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """A server that a test may harm."""
    with a_redis() as running:
        yield running


Ledger: TypeAlias = Callable[[], AbstractAsyncContextManager[LedgerHalf]]


def _in_a_file(folder: Path) -> Ledger:
    return lambda: open_sqlite_ledger(folder / "carteiro.db")


def _in_a_database(folder: Path) -> Ledger:
    return lambda: open_postgres_ledger(postgres_url(folder), PostgresOptions(connections=4))


@pytest.fixture(params=[_in_a_file, _in_a_database])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    """Each ledger that supports a separate queue."""
    opened: Ledger = request.param(tmp_path)
    return opened


@asynccontextmanager
async def _paired(server: RedisServer, ledger: Ledger) -> AsyncIterator[Pair]:
    queue = open_redis(server.url, RedisOptions(patience=timedelta(seconds=2)))
    async with open_paired(ledger(), queue) as pair:
        await pair.backend.tenants.define(tenants_named([ACME, BRASA]))
        yield pair


class _Office:
    """A worker that counts its deliveries, and the relay next to it."""

    def __init__(self, pair: Pair) -> None:
        self.delivered: Counter[MessageId] = Counter()
        self._pair = pair

    async def deliver(self, parcel: Parcel, _: Handover) -> Outcome:
        await asyncio.sleep(0.005)
        self.delivered[parcel.message] += 1
        return Taken(f"id-{parcel.message}")

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Work and relay."""
        kind = Kind(
            name=EMAIL,
            provider="counter",
            confirm=confirm,
            deliver=self.deliver,
            policy=always(PRESETS["development"]),
            declares=True,
            call_limit=timedelta(seconds=10),
        )
        backend = self._pair.backend
        worker = Worker(
            backend.store,
            backend.wake,
            [Pool("email", 20, (kind,))],
            lengths=Lengths(SHORT, SHORT, SHORT),
        )
        tasks = [
            asyncio.create_task(worker.run()),
            asyncio.create_task(
                relay(self._pair.ledger, self._pair.queue, self._pair.found, every=SOON)
            ),
        ]
        try:
            yield
        finally:
            worker.stop()
            await tasks[0]
            tasks[1].cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _finished(backend: Backend, count: int) -> None:
    """Wait until this many are sent and nothing else is left."""
    async with asyncio.timeout(PATIENCE_S):
        while await backend.reading.states() != {State.SENT: count}:
            await asyncio.sleep(0.02)


async def _sent(store: Store, jobs: list[LeasedJob]) -> list[State | None]:
    """Declare and settle them; their final states."""
    states = []
    for job in jobs:
        assert isinstance(await declare(store, job), Begun)
        states.append((await settled(store, job, sent())).state)
    return states


def _flush(server: RedisServer) -> None:
    server.flush()


def _kill(server: RedisServer) -> None:
    server.kill()
    server.start()


def _fail_over_to_an_empty_one(server: RedisServer) -> None:
    server.kill()
    server.start(empty=True)


@pytest.mark.parametrize("harm", [_flush, _kill, _fail_over_to_an_empty_one])
async def test_harm_under_load_loses_nothing_and_sends_nothing_twice(
    harm: Callable[[RedisServer], None], server: RedisServer, ledger: Ledger
) -> None:
    """Messages come in and go out all the time; the server is harmed three times."""
    async with _paired(server, ledger) as pair:
        office = _Office(pair)
        async with office.working():
            for number in range(ROUNDS):
                await accepted(pair.backend.store, *messages(PER_ROUND, content=CONTENT))
                if number % 4 == 1:
                    await asyncio.to_thread(harm, server)
            await _finished(pair.backend, ROUNDS * PER_ROUND)

    assert len(office.delivered) == ROUNDS * PER_ROUND
    assert set(office.delivered.values()) == {1}


async def test_old_copy_revives_nothing_finished(server: RedisServer, ledger: Ledger) -> None:
    """Its waiting messages were sent long ago; newer ones are missing in it."""
    async with _paired(server, ledger) as pair:
        office = _Office(pair)
        await accepted(pair.backend.store, *messages(PER_ROUND, content=CONTENT))
        server.stop()
        copy = server.back_up()
        server.start()
        async with office.working():
            await _finished(pair.backend, PER_ROUND)
            server.stop()
            await accepted(pair.backend.store, *messages(PER_ROUND, content=CONTENT))
            server.restore(copy)
            server.start()
            await _finished(pair.backend, 2 * PER_ROUND)
            async with asyncio.timeout(PATIENCE_S):
                while any(each.unfinished for each in await pair.backend.reading.depths()):
                    await asyncio.sleep(0.02)

    assert set(office.delivered.values()) == {1}


async def test_accept_declare_and_settle_work_without_the_queue(
    server: RedisServer, ledger: Ledger
) -> None:
    """Claimed messages are sent; new ones wait for the queue."""
    async with _paired(server, ledger) as pair:
        store = pair.backend.store
        await accepted(store, *messages(2, content=CONTENT))
        first, second = await claimed(store)
        server.stop()

        await accepted(store, *messages(3, content=CONTENT))
        office = _Office(pair)
        sent_meanwhile = await _sent(store, [first, second])
        server.start()
        async with office.working():
            await _finished(pair.backend, 5)

    assert sent_meanwhile == [State.SENT, State.SENT]
    assert len(office.delivered) == 3


async def test_full_server_stops_only_puts(server: RedisServer, ledger: Ledger) -> None:
    """Accept, claim and settle go on; the missing ones are put when there is room."""
    async with _paired(server, ledger) as pair:
        store = pair.backend.store
        await accepted(store, *messages(4, content=CONTENT))
        with redis.Redis.from_url(server.url) as client:
            client.config_set("maxmemory", 1)
            await accepted(store, *messages(4, content=CONTENT))
            jobs = await claimed(store)
            states = await _sent(store, jobs)
            client.config_set("maxmemory", 0)
        office = _Office(pair)
        async with office.working():
            await _finished(pair.backend, 8)

    assert states == [State.SENT] * 4
    assert len(office.delivered) == 4


async def test_unreachable_ledger_counts_no_claims(server: RedisServer, ledger: Ledger) -> None:
    """The jobs did not run: repeated claims in vain do not make them suspects."""

    class Away:
        """A ledger whose opening fails."""

        def __init__(self, real: LedgerHalf) -> None:
            self.accept = real.ledger.accept

        async def open(self, *_: object) -> NoReturn:
            raise StoreUnavailable("the ledger is down")

    async with _paired(server, ledger) as pair:
        await accepted(pair.backend.store, *messages(2, content=CONTENT))
        away: Any = Away(pair.ledger)
        broken = Paired(replace(pair.ledger, ledger=away), pair.queue)
        for _ in range(6):
            with pytest.raises(StoreUnavailable):
                await claimed(broken)

        assert [job.claims for job in await claimed(pair.backend.store)] == [1, 1]


async def _is_released(store: Store, leases: Sequence[Lease]) -> bool:
    try:
        await store.release(leases)
    except StoreUnavailable:
        return False
    return True


async def test_release_without_the_queue_fails_and_is_repeated(
    server: RedisServer, ledger: Ledger
) -> None:
    """A release that is lost in silence would look like a crash of the worker."""
    async with _paired(server, ledger) as pair:
        store = pair.backend.store
        await accepted(store, *messages(2, content=CONTENT))
        leases = [job.lease for job in await claimed(store)]
        server.stop()
        missed = not await _is_released(store, leases)
        server.start()
        async with asyncio.timeout(PATIENCE_S):
            while not await _is_released(store, leases):
                await asyncio.sleep(0.02)

        assert missed
        assert [job.claims for job in await claimed(store)] == [1, 1]


async def test_pause_outlives_the_queue(server: RedisServer, ledger: Ledger) -> None:
    """An empty queue hands out nothing before it knows the pauses."""
    async with _paired(server, ledger) as pair:
        store = pair.backend.store
        await pair.backend.tenants.define([a_tenant(ACME, paused=True)])
        server.flush()

        await accepted(store, *messages(2, ACME), *messages(1, BRASA))

        assert [job.tenant for job in await claimed(store)] == [BRASA]


async def test_index_of_dead_letters_has_its_own_key(server: RedisServer, ledger: Ledger) -> None:
    """``ZCARD email:send:dlq`` is their number, by expiry, also after everything was lost."""
    async with _paired(server, ledger) as pair:
        store, letters = pair.backend.store, pair.backend.dead_letters
        kept, dropped = await accepted(store, *messages(2))
        await attempted(store, dead(), limit=1)
        await attempted(store, dead(), limit=1)
        with redis.Redis.from_url(server.url, decode_responses=True) as client:
            before = client.zcard("email:send:dlq")
            await letters.drop([dropped])
            after = client.zrange("email:send:dlq", 0, -1, withscores=True)
            client.flushall()
            async with _Office(pair).working(), asyncio.timeout(PATIENCE_S):
                while client.zrange("email:send:dlq", 0, -1, withscores=True) != after:
                    await asyncio.sleep(0.02)
        [letter] = (await letters.find()).rows

    expiry_ms = round((letter.moved_at + letter.ttl).timestamp() * 1000)
    assert before == 2
    assert after == [(kept, expiry_ms)]


class _CountedLedger:
    """A ledger that counts how often all unfinished messages are read."""

    def __init__(self, ledger: Any) -> None:
        self._ledger = ledger
        self.full = 0

    def __getattr__(self, name: str) -> Any:
        """All else."""
        return getattr(self._ledger, name)

    async def unfinished(self, **asked: Any) -> Any:
        """Count."""
        self.full += 1
        return await self._ledger.unfinished(**asked)


def _relays(pair: Pair) -> tuple[Relay, Relay, _CountedLedger]:
    """A relay and its successor, and the ledger that they read."""
    counted = _CountedLedger(pair.ledger.ledger)
    half = replace(pair.ledger, ledger=counted)
    first, second = (Relay(half, pair.queue, pair.found, term=timedelta(0)) for _ in range(2))
    return first, second, counted


async def test_relay_goes_on_where_the_last_one_ended(server: RedisServer, ledger: Ledger) -> None:
    """It does not read what is known to be queued, and misses nothing that was accepted in between."""
    async with _paired(server, ledger) as pair:
        first, second, counted = _relays(pair)
        await pair.backend.store.accept(messages(2, ACME))
        await first.round()
        await first.leave()
        await pair.ledger.ledger.accept(messages(1, BRASA))
        await second.round()
        tenants = [job.tenant for job in await claimed(pair.backend.store)]

    assert counted.full == 1
    assert sorted(tenants) == [ACME, ACME, BRASA]


async def _crash(first: Relay, _: Pair, __: RedisServer) -> None:
    """The first relay does not leave."""
    assert first


async def _wipe(first: Relay, _: Pair, server: RedisServer) -> None:
    await first.leave()
    server.flush()


async def _restore_ledger(first: Relay, pair: Pair, _: RedisServer) -> None:
    await first.leave()
    await pair.ledger.backend.marks.put(QUEUE, "an earlier relay")


async def _redrive(first: Relay, pair: Pair, _: RedisServer) -> None:
    await first.leave()
    await pair.backend.dead_letters.redrive([an_id()], by="ana")


async def _define(first: Relay, pair: Pair, _: RedisServer) -> None:
    await first.leave()
    await pair.backend.tenants.define([a_tenant()])


@pytest.mark.parametrize("harm", [_crash, _wipe, _restore_ledger, _redrive, _define])
async def test_relay_puts_everything_after_one_that_did_not_end_in_order(
    harm: Callable[[Relay, Pair, RedisServer], Awaitable[None]], server: RedisServer, ledger: Ledger
) -> None:
    """It crashed; or queue or ledger are not what they were; or another process may have died between changing both."""
    async with _paired(server, ledger) as pair:
        first, second, counted = _relays(pair)
        await pair.backend.store.accept(messages(2, ACME))
        await first.round()
        await harm(first, pair, server)
        before = counted.full
        await second.round()

    assert (before, counted.full) == (1, 2)

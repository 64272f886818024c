"""Events on Postgres are in partitions that are dropped as a whole: without vacuum, and without waits."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import psycopg
import pytest

from carteiro.model import EventType, MessageId
from carteiro.ports import Backend
from carteiro.ports.upkeep import Pruned
from carteiro.stores.postgres import PostgresOptions, migrate, open_postgres
from support.builders import ACME, BRASA, a_message, dead, messages, sent, tenants_named
from support.clock import StoreClock
from support.postgres_server import OWNERS
from support.shared_servers import shared_postgres
from support.steps import accepted, attempted, claimed, settled

pytestmark = pytest.mark.servers

_DAY = timedelta(days=1)
_MESSAGES = 5


@pytest.fixture(params=OWNERS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with only the schema, with any owner."""
    with shared_postgres().a_database(migrate, owner=request.param) as made:
        yield made


@pytest.fixture
def clock() -> StoreClock:
    """The time of the store."""
    return StoreClock()


@pytest.fixture
async def backend(url: str, clock: StoreClock) -> AsyncIterator[Backend]:
    """A store that knows two tenants."""
    async with open_postgres(url, PostgresOptions(clock=clock)) as opened:
        await opened.tenants.define(tenants_named([ACME, BRASA]))
        yield opened


def _asked(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query).fetchall()


def _parts(url: str) -> list[object]:
    """The partitions of events, by the first number of each; without the default one."""
    found = _asked(url, "SELECT from_no FROM carteiro.event_parts ORDER BY from_no")
    tables = _asked(
        url,
        "SELECT substr(relname, 8)::bigint FROM pg_inherits JOIN pg_class ON oid = inhrelid"
        " WHERE inhparent = 'carteiro.events'::regclass"
        " AND inhrelid <> 'carteiro.events_rest'::regclass ORDER BY 1",
    )
    assert found == tables
    return [each for (each,) in found]


def _events(url: str, table: str = "events") -> object:
    [(count,)] = _asked(url, f"SELECT count(*) FROM carteiro.{table}")
    return count


def _fill_part(url: str) -> None:
    """As if all numbers of the first partition had been used."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT setval('carteiro.message_no', min(to_no) + 1) FROM carteiro.event_parts"
        )


async def _pruned(backend: Backend) -> Pruned:
    return await backend.upkeep.prune(bodies=None, histories=_DAY)


async def _all_sent(backend: Backend) -> None:
    await accepted(backend.store, *messages(_MESSAGES))
    for job in await claimed(backend.store):
        await settled(backend.store, job, sent())


async def test_expired_partition_is_dropped_at_once(
    backend: Backend, url: str, clock: StoreClock
) -> None:
    """The pass that deletes the last message of a partition deletes no event: it drops the table."""
    await _all_sent(backend)
    _fill_part(url)
    clock.advance(_DAY)
    with psycopg.connect(url) as reader:  # or there would be nothing to check
        [before] = reader.execute("SELECT count(*) FROM carteiro.events_0").fetchall()
        gone = await _pruned(backend)
        [left] = reader.execute("SELECT count(*), count(xmax <> 0 OR NULL) FROM carteiro.events_0")

    await _pruned(backend)

    assert gone.histories == _MESSAGES
    assert left == (*before, 0)
    assert 0 not in _parts(url)
    assert _events(url) == 0
    assert _asked(url, "SELECT to_regclass('carteiro.events_0')") == [(None,)]


async def test_partition_being_filled_is_pruned_row_by_row(
    backend: Backend, url: str, clock: StoreClock
) -> None:
    """It may take years to fill: events are not kept that long."""
    await _all_sent(backend)
    clock.advance(_DAY)

    await _pruned(backend)

    assert _events(url) == 0
    assert 0 in _parts(url)


async def test_partition_that_filled_slowly_is_pruned_row_by_row(
    backend: Backend, url: str, clock: StoreClock
) -> None:
    """Old events do not wait for those of days later."""
    await _all_sent(backend)
    clock.advance(3 * _DAY)
    await accepted(backend.store, a_message())
    _fill_part(url)

    await _pruned(backend)

    assert _events(url) == len([EventType.ENQUEUED])
    assert 0 in _parts(url)


async def test_remaining_rows_of_a_partition_are_moved(
    backend: Backend, url: str, clock: StoreClock
) -> None:
    """A dead letter keeps its timeline, and not its partition."""
    [kept] = await accepted(backend.store, a_message())
    await attempted(backend.store, dead())
    await _all_sent(backend)
    _fill_part(url)
    timeline = await backend.reading.events(kept)
    await _pruned(backend)
    clock.advance(_DAY)
    await _pruned(backend)
    is_waited_for = 0 in _parts(url)
    clock.advance(2 * _DAY)

    await _pruned(backend)

    assert is_waited_for
    assert 0 not in _parts(url)
    assert await backend.reading.events(kept) == timeline
    assert _events(url, "events_rest") == len(timeline) == _events(url)


async def test_partition_with_many_remaining_rows_is_pruned_row_by_row_in_the_end(
    backend: Backend, url: str, clock: StoreClock
) -> None:
    """Events of deleted messages are not kept for as long as others stay."""
    await _all_sent(backend)
    waiting = await accepted(backend.store, *(a_message(ACME) for _ in range(1001)))
    _fill_part(url)
    clock.advance(_DAY)
    await _pruned(backend)
    before = _events(url)
    clock.advance(3 * _DAY)

    await _pruned(backend)

    assert before != len(waiting)
    assert _events(url) == len(waiting)
    assert 0 in _parts(url)


async def test_emptied_partition_is_dropped(backend: Backend, url: str, clock: StoreClock) -> None:
    """Or a database that grows slowly would have more and more of them."""
    await _all_sent(backend)
    clock.advance(_DAY)
    await _pruned(backend)
    _fill_part(url)

    await _pruned(backend)

    assert 0 not in _parts(url)


async def test_partition_in_use_makes_nobody_wait(
    backend: Backend, url: str, clock: StoreClock
) -> None:
    """A reader of events keeps the partition, and a writer meanwhile does not wait for long."""
    await _all_sent(backend)
    _fill_part(url)
    clock.advance(_DAY)
    with psycopg.connect(url) as reader:
        reader.execute("SELECT count(*) FROM carteiro.events")
        _, new = await asyncio.gather(_pruned(backend), accepted(backend.store, a_message()))
        kept = 0 in _parts(url)

    await _pruned(backend)

    assert kept
    assert 0 not in _parts(url)
    assert await _types(backend, new[0]) == [EventType.ENQUEUED]


async def _types(backend: Backend, message: MessageId) -> list[EventType]:
    return [event.type for event in await backend.reading.events(message)]


async def test_partitions_are_created_ahead_once(backend: Backend, url: str) -> None:
    """By any number of processes; without any retention, too: it may be set later."""
    prune = backend.upkeep.prune
    await asyncio.gather(*(prune(bodies=None, histories=None) for _ in range(4)))
    made = _parts(url)

    await prune(bodies=None, histories=None)

    assert len(made) > 1
    assert _parts(url) == made


async def test_numbers_without_a_partition_are_in_the_default_one(
    backend: Backend, url: str
) -> None:
    """After weeks without maintenance, or a flood, the next partition begins behind them."""
    _asked(url, "SELECT setval('carteiro.message_no', 50000000)")
    [message] = await accepted(backend.store, a_message())
    in_the_rest = _events(url, "events_rest")

    await _pruned(backend)
    await attempted(backend.store, sent())

    assert in_the_rest == 1
    assert (await _types(backend, message))[0] is EventType.ENQUEUED
    assert _events(url, "events_rest") == len(await _types(backend, message))
    newest = _parts(url)[-1]
    assert isinstance(newest, int)
    assert newest > 50_000_000


async def test_erasing_does_not_wait_for_a_partition(backend: Backend, url: str) -> None:
    """It happens at once."""
    await _all_sent(backend)
    _fill_part(url)
    await _pruned(backend)

    await backend.tenants.erase(ACME)

    assert _events(url) == 0

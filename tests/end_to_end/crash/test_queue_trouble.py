"""Trouble with a separate queue under load: it dies, loses its data, is full, or its connection is cut or silent.

The workers are real processes. They are never restarted: they recover by themselves, log what they
wait for, and the law of delivery holds. Trouble with the ledger is in ``test_server_trouble``; here each trouble
runs on one of the two ledgers, for the queue does not depend on it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from carteiro.stores.postgres import migrate
from end_to_end.crash.children import wait_for_rest
from end_to_end.crash.law import broken
from end_to_end.crash.places import Place
from end_to_end.crash.trouble import (
    LULL_S,
    WORKERS,
    cuts_at_random,
    queue_waits,
    silence_of,
    under_load,
    workers_at,
)
from support.cut_proxy import CutProxy, a_cut_proxy
from support.redis_server import RedisServer, a_redis
from support.shared_servers import shared_postgres


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """A server that may be killed."""
    with a_redis() as running:
        yield running


@pytest.fixture
def beside_a_file(server: RedisServer, tmp_path: Path) -> Place:
    """An empty file, an empty queue, and a folder."""
    server.flush()
    return Place(f"sqlite:///{tmp_path / 'post.db'}", str(tmp_path), server.url)


@pytest.fixture
def beside_a_database(server: RedisServer, tmp_path: Path) -> Iterator[Place]:
    """An empty database, an empty queue, and a folder."""
    server.flush()
    with shared_postgres().a_database(migrate) as url:
        yield Place(url, str(tmp_path), server.url)


async def test_killed_and_restarted_queue_loses_nothing(
    beside_a_database: Place, server: RedisServer
) -> None:
    """Killed -9 under load, twice, the second time without its data: the workers go on when it is back."""
    place = beside_a_database

    async def die() -> None:
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(0.5)
        await asyncio.to_thread(server.start)

    async def die_and_forget() -> None:
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start, empty=True)

    async with workers_at(place):
        accepted = await under_load(place, die, die_and_forget)
        await asyncio.to_thread(wait_for_rest, place)

    assert broken(place, accepted) == []
    assert len(set(queue_waits(place))) > 1  # it backs off


async def test_flushed_and_full_queue_loses_nothing(
    beside_a_file: Place, server: RedisServer
) -> None:
    """FLUSHALL repeatedly; then it is full for a while, and new messages are put later."""
    place = beside_a_file

    async def forget() -> None:
        for _ in range(5):
            await asyncio.to_thread(server.flush)
            await asyncio.sleep(LULL_S)

    async def fill_up() -> None:
        with place.redis() as client:
            client.config_set("maxmemory", 1)
            await asyncio.sleep(5 * LULL_S)
            client.config_set("maxmemory", 0)

    async with workers_at(place):
        accepted = await under_load(place, forget, fill_up)
        await asyncio.to_thread(wait_for_rest, place)

    assert broken(place, accepted) == []


@asynccontextmanager
async def _behind_a_proxy(
    place: Place, server: RedisServer
) -> AsyncIterator[tuple[CutProxy, Place]]:
    """The same queue, behind a proxy."""
    async with a_cut_proxy(server.port) as proxy:
        yield proxy, replace(place, queue=server.url.replace(f":{server.port}/", f":{proxy.port}/"))


async def test_random_cuts_of_connections_to_the_queue_lose_nothing(
    beside_a_database: Place, server: RedisServer
) -> None:
    """Inside a script, or in its answer: its result is lost."""
    async with _behind_a_proxy(beside_a_database, server) as (proxy, behind), workers_at(behind):
        accepted = await under_load(behind, cuts_at_random(proxy))
        await asyncio.to_thread(wait_for_rest, beside_a_database)

    assert proxy.cuts > WORKERS
    assert broken(beside_a_database, accepted) == []
    assert queue_waits(beside_a_database)


async def test_silent_connections_to_the_queue_are_given_up(
    beside_a_file: Place, server: RedisServer
) -> None:
    """Nothing comes and nothing ends: new ones replace them."""
    async with _behind_a_proxy(beside_a_file, server) as (proxy, behind), workers_at(behind):
        accepted = await under_load(behind, silence_of(proxy))
        await asyncio.to_thread(wait_for_rest, beside_a_file)

    assert broken(beside_a_file, accepted) == []
    assert queue_waits(beside_a_file)

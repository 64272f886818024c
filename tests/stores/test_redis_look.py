"""State of a queue in Redis, on live servers: its fill level, and if it is writable."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import redis

from carteiro.errors import StoreUnavailable
from carteiro.model import Accepted
from carteiro.stores.paired_ports import open_paired
from carteiro.stores.redis import RedisOptions, open_redis
from carteiro.stores.sqlite import open_sqlite_ledger
from support.builders import ACME, a_message, tenants_named
from support.redis_server import RedisServer, a_redis
from support.services import HOST

pytestmark = pytest.mark.servers

PATIENT = RedisOptions(patience=timedelta(seconds=20))
MOST = 64 * 1024 * 1024


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """A server that a test may harm."""
    with a_redis(settings={"maxmemory": str(MOST)}) as running:
        yield running


async def test_memory_use_and_limit_are_reported(server: RedisServer) -> None:
    """The server's own figures; more data is a higher value."""
    async with open_redis(server.url, PATIENT) as half:
        before = await half.desk.look()
        with redis.Redis.from_url(server.url) as client:
            client.set("ballast", b"x" * 4_000_000)
        after = await half.desk.look()

    assert (before.max_bytes, before.is_full) == (MOST, False)
    assert 0 < before.used_bytes < MOST
    assert 4_000_000 <= after.used_bytes - before.used_bytes < MOST


async def test_server_without_a_limit_is_never_full(server: RedisServer) -> None:
    """It reports 0, as in its own settings."""
    with redis.Redis.from_url(server.url) as client:
        client.config_set("maxmemory", 0)

    async with open_redis(server.url, PATIENT) as half:
        told = await half.desk.look()

    assert (told.max_bytes, told.is_full) == (0, False)
    assert told.used_bytes > 0


async def test_full_server_is_reachable(server: RedisServer) -> None:
    """Workers can go on with it."""
    with redis.Redis.from_url(server.url) as client:
        client.config_set("maxmemory", 1)

    async with open_redis(server.url, PATIENT) as half:
        told = await half.desk.look()

    assert told.is_full
    assert told.used_bytes > told.max_bytes == 1


async def test_replica_cannot_be_a_queue(server: RedisServer) -> None:
    """It can be read, but not claimed from."""
    with a_redis(settings={"replicaof": f"{HOST} {server.port}"}) as replica:
        async with open_redis(replica.url, PATIENT) as half:
            with pytest.raises(StoreUnavailable):
                await half.desk.look()


async def test_stopped_server_is_unreachable(server: RedisServer) -> None:
    """At once, and when it stops while connected."""
    async with open_redis(server.url, PATIENT) as half:
        await half.desk.look()
        server.stop()
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await half.desk.look()


async def test_server_that_cannot_store_is_unreachable(server: RedisServer, tmp_path: Path) -> None:
    """Committed messages are answered all the same, and wait until the server accepts them."""
    ledger = open_sqlite_ledger(tmp_path / "carteiro.db")
    async with open_paired(ledger, open_redis(server.url, PATIENT)) as pair:
        backend = pair.backend
        await backend.tenants.define(tenants_named([ACME]))
        with redis.Redis.from_url(server.url) as client:
            client.config_set("min-replicas-to-write", 1)

        answers = await backend.store.accept([a_message(ACME)])
        with pytest.raises(StoreUnavailable):
            await pair.queue.desk.look()

    assert [type(each) for each in answers] == [Accepted]


async def test_refusals_are_counted(server: RedisServer) -> None:
    """Connections beyond the server's limit, and commands for lack of memory."""
    async with open_redis(server.url, PATIENT) as half:
        before = await half.desk.look()
        with redis.Redis.from_url(server.url) as client:
            client.config_set("maxclients", client.info("clients")["connected_clients"])
            with redis.Redis.from_url(server.url) as other, pytest.raises(redis.ConnectionError):
                other.ping()
            client.config_set("maxmemory", 1)
            with pytest.raises(redis.ResponseError):
                client.set("ballast", b"x")
            run = client.info("server")["run_id"]
        after = await half.desk.look()

    assert before.run == after.run == run
    assert (before.rejected, before.out_of_memory) == (0, 0)
    assert (after.rejected, after.out_of_memory) == (1, 1)

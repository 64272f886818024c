"""How a queue in Redis is, looked at on live servers: how full, and whether it could be written."""

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
    """A server that a test may do anything to."""
    with a_redis(settings={"maxmemory": str(MOST)}) as running:
        yield running


async def test_it_says_how_much_is_used_of_what_may_be(server: RedisServer) -> None:
    """What the server itself reports; more when more is in it."""
    async with open_redis(server.url, PATIENT) as half:
        before = await half.desk.look()
        with redis.Redis.from_url(server.url) as client:
            client.set("ballast", b"x" * 4_000_000)
        after = await half.desk.look()

    assert (before.max_bytes, before.is_full) == (MOST, False)
    assert 0 < before.used_bytes < MOST
    assert 4_000_000 <= after.used_bytes - before.used_bytes < MOST


async def test_a_server_without_a_limit_is_never_full(server: RedisServer) -> None:
    """It says 0, as in its own settings."""
    with redis.Redis.from_url(server.url) as client:
        client.config_set("maxmemory", 0)

    async with open_redis(server.url, PATIENT) as half:
        told = await half.desk.look()

    assert (told.max_bytes, told.is_full) == (0, False)
    assert told.used_bytes > 0


async def test_a_full_server_can_be_looked_at(server: RedisServer) -> None:
    """Workers can go on with it, so it is not away."""
    with redis.Redis.from_url(server.url) as client:
        client.config_set("maxmemory", 1)

    async with open_redis(server.url, PATIENT) as half:
        told = await half.desk.look()

    assert told.is_full
    assert told.used_bytes > told.max_bytes == 1


async def test_a_replica_is_no_queue(server: RedisServer) -> None:
    """It can be read, and no claim can be made there."""
    with a_redis(settings={"replicaof": f"{HOST} {server.port}"}) as replica:
        async with open_redis(replica.url, PATIENT) as half:
            with pytest.raises(StoreUnavailable):
                await half.desk.look()


async def test_a_server_that_is_not_there_is_away(server: RedisServer) -> None:
    """At once, and when it went while we were connected."""
    async with open_redis(server.url, PATIENT) as half:
        await half.desk.look()
        server.stop()
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await half.desk.look()


async def test_a_server_that_cannot_keep_what_it_is_told_is_away(
    server: RedisServer, tmp_path: Path
) -> None:
    """What was committed is answered all the same, and waits until the server takes it."""
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

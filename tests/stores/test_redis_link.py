"""The connection that all scripts of a process share: answers go to those who asked."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import redis
from redis.exceptions import ConnectionError as NotConnected

from carteiro.stores.redis.link import Link
from carteiro.stores.redis.server import client_of, close
from support.redis_server import RedisServer, a_redis

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """A server for this module alone."""
    with a_redis() as running:
        yield running


@asynccontextmanager
async def _link(server: RedisServer) -> AsyncIterator[Link]:
    client = client_of(server.url, connections=1)
    connection = client.connection_pool.make_connection()  # type: ignore[no-untyped-call] # the library has no type here
    await connection.connect()
    link = Link(connection)
    try:
        yield link
    finally:
        link.leave()
        await close(client)


async def test_answers_of_those_who_have_given_up_go_to_nobody(server: RedisServer) -> None:
    """Requests are answered in their order, also to those who do not wait any more."""
    async with _link(server) as link:
        asked = [asyncio.create_task(link.ask("ECHO", number)) for number in range(5)]
        await asyncio.sleep(0)
        asked[1].cancel()
        asked[3].cancel()
        told = await asyncio.gather(*asked, return_exceptions=True)

    assert [each for each in told if isinstance(each, str)] == ["0", "2", "4"]


async def test_link_that_is_left_still_answers_those_who_wait(server: RedisServer) -> None:
    """One operation that takes too long does not fail the others that are on their way."""
    async with _link(server) as link:
        asked = asyncio.create_task(link.ask("ECHO", "still"))
        await asyncio.sleep(0)
        link.leave()

        assert await asked == "still"
        assert not link.is_open


async def test_lost_connection_fails_all_who_wait(server: RedisServer) -> None:
    """Nobody waits for an answer that cannot come; further requests need another link."""
    async with _link(server) as link:
        number = await link.ask("CLIENT", "ID")
        asked = [asyncio.create_task(link.ask("BLPOP", "nothing", 0)) for _ in range(2)]
        await asyncio.sleep(0)
        with redis.Redis.from_url(server.url) as other:
            other.client_kill_filter(_id=str(number))
        told = await asyncio.gather(*asked, return_exceptions=True)

        assert [type(each) for each in told] == [NotConnected] * 2
        assert not link.is_open

"""Servers for tests that do them no harm; one that stops or kills a server starts its own."""

import asyncio
from collections.abc import Callable, Iterator, Mapping

import pytest
import uvloop

from support.postgres_server import PostgresServer
from support.redis_server import RedisServer, a_redis
from support.shared_servers import shared_postgres


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Each loop has its own way with sockets."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
def postgres() -> PostgresServer:
    return shared_postgres()


@pytest.fixture(scope="module")
def redis_server() -> Iterator[RedisServer]:
    with a_redis() as server:
        yield server

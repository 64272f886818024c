"""Servers shared by tests that do not harm them; a test that stops or kills a server starts its own."""

import asyncio
from collections.abc import Callable, Iterator, Mapping

import pytest
import uvloop

from support.alertmanager_server import AlertmanagerServer
from support.kafka_server import Broker
from support.mongo_server import MongoServer
from support.postgres_server import PostgresServer
from support.redis_server import RedisServer, a_redis
from support.shared_servers import (
    shared_alertmanager,
    shared_kafka,
    shared_mongo,
    shared_postgres,
)


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Each loop has its own implementation of sockets."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
def postgres() -> PostgresServer:
    return shared_postgres()


@pytest.fixture(scope="module")
def redis_server() -> Iterator[RedisServer]:
    with a_redis() as server:
        yield server


@pytest.fixture
def kafka() -> Broker:
    return shared_kafka()


@pytest.fixture
def mongo() -> MongoServer:
    return shared_mongo()


@pytest.fixture
def alertmanager() -> AlertmanagerServer:
    return shared_alertmanager()

"""Real servers, with a separate database, topics and group for each test."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from uuid import uuid4

import pytest
import uvloop

from carteiro.config import TicketSettings
from carteiro.tickets.archive.mongo import MongoArchive
from support.alertmanager_server import AlertmanagerServer
from support.archiving import tickets_settings
from support.kafka_server import Broker
from support.mongo_server import MongoServer, a_mongo, forget_sockets
from support.redis_server import RedisServer
from support.shared_servers import shared_alertmanager, shared_kafka, shared_mongo, shared_redis


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
def no_sockets_left() -> Iterator[None]:
    """Set up first, so that it ends last: after the loop of the test is closed."""
    yield
    forget_sockets()


@pytest.fixture
def mongo() -> MongoServer:
    return shared_mongo()


@pytest.fixture
def own_mongo() -> Iterator[MongoServer]:
    """A server that may be killed."""
    with a_mongo() as server:
        yield server
    forget_sockets()


@pytest.fixture
def collected() -> Iterator[None]:
    """For a test whose server is down."""
    yield
    forget_sockets()


@pytest.fixture
def redis_server() -> RedisServer:
    return shared_redis()


@pytest.fixture
def alertmanager() -> AlertmanagerServer:
    return shared_alertmanager()


@pytest.fixture
def kafka() -> Broker:
    return shared_kafka()


@pytest.fixture
def database(mongo: MongoServer) -> Iterator[str]:
    with mongo.a_database() as name:
        yield name


@pytest.fixture
def settings(mongo: MongoServer, database: str) -> TicketSettings:
    return tickets_settings(MONGO=mongo.url, MONGO_DATABASE=database)


@pytest.fixture
async def unprepared(settings: TicketSettings) -> AsyncIterator[MongoArchive]:
    opened = MongoArchive(settings)
    yield opened
    await opened.close()


@pytest.fixture
async def archive(unprepared: MongoArchive) -> MongoArchive:
    await unprepared.prepare()
    return unprepared


@pytest.fixture
def topics(kafka: Broker) -> dict[str, str]:
    """Settings with topics and a group of their own."""
    return {
        "BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "TOPIC": kafka.new_topic(),
        "DLQ_TOPIC": kafka.new_topic(partitions=3),
        "GROUP": f"group-{uuid4().hex}",
    }

"""One server of each kind for all tests of a process, started on first use.

A broker is for all processes of a run: it is the only one that takes seconds and much memory.
"""

import atexit
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache

from support.alertmanager_server import AlertmanagerServer, an_alertmanager
from support.between_processes import shared_port
from support.kafka_server import Broker, a_kafka
from support.mongo_server import MongoServer, a_mongo
from support.postgres_server import SUPERUSER, PostgresServer, a_postgres
from support.redis_server import RedisServer, a_redis
from support.reused_databases import ReusedDatabases

redis_databases = list(range(1, 1000))  # unused ones; a test that takes one puts it back, empty

_running = ExitStack()
atexit.register(_running.close)


@cache
def shared_postgres() -> PostgresServer:
    """The server that tests make databases of their own in."""
    return _running.enter_context(a_postgres())


@cache
def reused_databases(owner: str = SUPERUSER) -> ReusedDatabases:
    """Databases of that server with the schema; one whose schema a test changes serves no other."""
    return _running.enter_context(closing(ReusedDatabases(shared_postgres(), owner)))


@contextmanager
def a_migrated_database(owner: str = SUPERUSER) -> Iterator[str]:
    """The URL of one of them, for its owner."""
    databases = reused_databases(owner)
    name = databases.take()
    try:
        yield shared_postgres().url(name, user=owner)
    finally:
        databases.put_back(name)


@cache
def shared_redis() -> RedisServer:
    """The server in which each test has its own database."""
    return _running.enter_context(a_redis(settings={"databases": "1000"}))


@cache
def shared_kafka() -> Broker:
    """The broker in which each test has its own topics and groups; a test that stops one starts its own."""
    return Broker(_running.enter_context(shared_port("kafka", a_kafka)))


@cache
def shared_mongo() -> MongoServer:
    """The server in which each test has its own database."""
    return _running.enter_context(a_mongo())


@cache
def shared_alertmanager() -> AlertmanagerServer:
    """The server to which each test sends its own alerts."""
    return _running.enter_context(an_alertmanager())

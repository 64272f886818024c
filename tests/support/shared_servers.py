"""One server of each kind for all tests of a process, started when it is first asked for."""

import atexit
from contextlib import ExitStack
from functools import cache

from support.postgres_server import PostgresServer, a_postgres
from support.redis_server import RedisServer, a_redis

redis_databases = list(range(1, 1000))  # that nobody uses; whoever takes one puts it back, empty

_running = ExitStack()
atexit.register(_running.close)


@cache
def shared_postgres() -> PostgresServer:
    """The server that tests make databases of their own in."""
    return _running.enter_context(a_postgres())


@cache
def shared_redis() -> RedisServer:
    """The server that tests have databases of their own in."""
    return _running.enter_context(a_redis(settings={"databases": "1000"}))

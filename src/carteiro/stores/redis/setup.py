"""Opens the queue of one server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from carteiro.ports.queue import QueueHalf
from carteiro.stores.redis.desk import RedisDesk
from carteiro.stores.redis.options import RedisOptions
from carteiro.stores.redis.queue import RedisQueue
from carteiro.stores.redis.server import Server
from carteiro.stores.redis.wake import RedisWake


@asynccontextmanager
async def open_redis(
    url: str,
    options: RedisOptions = RedisOptions(),  # noqa: B008 - a value, never changed
) -> AsyncIterator[QueueHalf]:
    """Connect, now or when the server is reachable; closed when the block ends."""
    server = Server(url, options)
    wake = RedisWake(server)
    await wake.open()
    try:
        yield QueueHalf(RedisQueue(server, options, wake), RedisDesk(server), wake)
    finally:
        await wake.close()
        await server.close()

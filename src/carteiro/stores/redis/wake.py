"""Wake-up of idle workers: scripts publish to a channel, which a separate connection listens to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from redis.asyncio.client import PubSub
from redis.exceptions import RedisError
from uuid_utils import uuid7

from carteiro.stores.bell import Bell
from carteiro.stores.redis.server import PREFIX, Server

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0
_PATIENCE_S = 1.0
_ANSWERS_WITHIN_S = 10.0
_CHECK_EVERY_S = 15.0


class RedisWake(Bell):
    """Rings after every script that may make a job ready; while the server is unreachable, waiting workers poll."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.name = str(uuid7())  # of those who wait here
        self._server = server
        self._hears = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start to listen; an unreachable server is tried again later."""
        self._listening = asyncio.create_task(self._listen())
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                await self._hears.wait()

    async def close(self) -> None:
        """Stop listening."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def _listen(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                async with self._server.client.pubsub(ignore_subscribe_messages=False) as line:
                    async with asyncio.timeout(_ANSWERS_WITHIN_S):
                        await line.subscribe(f"{PREFIX}:bell")
                    async for kind, by in _heard(line):
                        pause_s = _FIRST_PAUSE_S
                        self._hears.set()
                        if by != self.name:
                            self.ring((kind,))
            except (RedisError, OSError):
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


async def _heard(line: PubSub) -> AsyncIterator[tuple[str, str]]:
    """The kinds that it rings for, "" for all, also after a reconnect, as notifications may be lost; who knows already.

    Without messages, ping the server: a silent connection may be dead.
    """
    is_asked = False
    while True:
        told = await line.get_message(timeout=_CHECK_EVERY_S)
        if told is not None:
            is_asked = False
            if told["type"] != "pong":
                kind, _, by = (told["data"] if told["type"] == "message" else "").partition("\t")
                yield kind, by
        elif is_asked:
            raise TimeoutError("the server has fallen silent")
        else:
            is_asked = True
            await line.ping()

"""The connection for scripts: each request is written at once, behind those that wait, and answered in that order.

The client library connects, then this reads and writes: a call of its own takes five times as long as the round trip.
"""

import asyncio
from collections import deque
from typing import Any

import hiredis
from redis.exceptions import ConnectionError as NotConnected

_BROKEN = "Connection closed by server."


class Link(asyncio.Protocol):
    """Belongs to the event loop that made it."""

    def __init__(self, connection: Any) -> None:  # noqa: ANN401 - the library's, of any kind of server
        self.is_open = True  # to further requests
        self.known: set[str] = set()  # scripts that it has sent
        self._connection = connection
        self._transport = connection._writer.transport  # noqa: SLF001 - it gives its own to nobody
        self._before = self._transport.get_protocol()
        parse = connection._parser.parse_error  # noqa: SLF001 - as above
        self._reader = hiredis.Reader(replyError=parse, encoding="utf-8", errors="replace")
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._transport.set_protocol(self)

    async def ask(self, *words: str | int | bytes) -> Any:  # noqa: ANN401 - whatever the server answers
        """The server's answer. If the caller gives up, it is dropped when it comes."""
        packed = hiredis.pack_command(words)  # type: ignore[arg-type] # it takes any number of words
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self._transport.write(packed)
        try:
            return await answer
        finally:
            self._close_if_left()

    def leave(self) -> None:
        """Take no more requests; close when nobody waits for an answer."""
        self.is_open = False
        self._close_if_left()

    def _close_if_left(self) -> None:
        if not self.is_open and all(each.done() for each in self._waiting):
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Give answers to those who wait."""
        self._reader.feed(data)
        while (told := self._reader.gets()) is not False:
            answer = self._waiting.popleft()
            if answer.done():
                continue
            if isinstance(told, Exception):
                answer.set_exception(told)
            else:
                answer.set_result(told)

    def connection_lost(self, error: Exception | None) -> None:
        """Nobody is answered any more."""
        self.is_open = False
        for answer in self._waiting:
            if not answer.done():
                answer.set_exception(NotConnected(str(error or _BROKEN)))
        self._before.connection_lost(error)
        self._connection._close()  # noqa: SLF001 - the library's only way without a wait

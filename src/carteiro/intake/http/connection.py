"""The server's side of a connection: answers go out in one piece, and who does not get to the point is cut off."""

import asyncio
from datetime import timedelta
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES = 64 * 1024
_MOST_HELD_BYTES = 64 * 1024


def patient_for(length: timedelta) -> type[HttpToolsProtocol]:
    """The protocol that closes a connection whose request has no whole head after this long.

    A head that is too large is cut off as well. The body is timed where it is read, because there
    the client can still be answered.
    """

    class Patient(_Patient):
        patience_s = length.total_seconds()

    return Patient


class _Corked:
    """A transport that writes once per turn of the event loop what was written piece by piece.

    Head and body of an answer are two writes: as two system calls they cost more than making them.
    """

    __slots__ = ("_held", "_held_bytes", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []
        self._held_bytes = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the transport offers
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes > _MOST_HELD_BYTES:  # the transport must be able to say that it is full
            self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._held:
            self._transport.write(b"".join(self._held))
            self._held.clear()
            self._held_bytes = 0


class _Patient(HttpToolsProtocol):
    patience_s: float
    _timer: asyncio.TimerHandle | None = None
    _head_since: float | None = None  # None: no head is being read
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", _Corked(transport, self.loop)))
        self._begin_head()
        self._timer = self.loop.call_later(self.patience_s, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head_since is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self.transport.abort()

    def on_message_begin(self) -> None:
        self._begin_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_since = None
        super().on_headers_complete()

    def _begin_head(self) -> None:
        self._head_since = self.loop.time()
        self._head_bytes = 0

    def _look(self) -> None:
        """One timer for the life of a connection: starting one for each request would cost more."""
        since, now = self._head_since, self.loop.time()
        if since is not None and now - since >= self.patience_s:
            self.transport.abort()
            return
        wait = self.patience_s if since is None else since + self.patience_s - now
        self._timer = self.loop.call_later(wait, self._look)

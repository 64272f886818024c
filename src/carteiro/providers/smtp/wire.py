"""The connection itself: commands out, whole replies in, each within its time."""

import asyncio
import re
from collections import deque
from datetime import timedelta
from typing import cast

from carteiro.providers.smtp import failures
from carteiro.providers.smtp.failures import Reply, Stage

_REPLY_LINE = re.compile(r"[1-5][0-9]{2}(?:[ -].*)?", re.DOTALL)
_LONGEST_REPLY = 64 * 1024  # bytes, all lines together; longer input is not a reply
_HIGH_WATER = 64 * 1024


class Wire(asyncio.Protocol):
    """One connection. Replies are kept in the order in which they came, until they are asked for."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rest = b""  # of a line that is still coming
        self._lines: list[str] = []
        self._size = 0
        self._replies: deque[Reply] = deque()
        self._nonsense: str | None = None
        self._ended: str | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_full = False
        self._closed = asyncio.Event()

    # --- what the loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be connected."""
        self.upgrade(cast("asyncio.Transport", transport))

    def upgrade(self, transport: asyncio.Transport) -> None:
        """Go on over this transport; "written" means that the system has all of it."""
        transport.set_write_buffer_limits(high=_HIGH_WATER, low=0)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Take in what came; whole replies can be had."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take_line(line.rstrip(b"\r").decode("utf-8", "replace"))
        if self._size + len(self._rest) > _LONGEST_REPLY:
            self._nonsense = self._nonsense or "it has no end"
            self.abort()
        self._wake()

    def _take_line(self, line: str) -> None:
        if not _REPLY_LINE.fullmatch(line) or (self._lines and line[:3] != self._lines[0][:3]):
            self._nonsense = self._nonsense or line
            return
        self._lines.append(line)
        self._size += len(line)
        if line[3:4] != "-":
            self._replies.append(Reply(int(line[:3]), "\n".join(self._lines)))
            self._lines, self._size = [], 0

    def eof_received(self) -> bool:
        """Nothing more comes: close our side, too."""
        self._ended = self._ended or "the relay closed the connection"
        self._wake()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Be disconnected."""
        self._ended = self._ended or (str(exc) if exc else "the connection was closed")
        self._closed.set()
        self._wake()

    def pause_writing(self) -> None:
        """The system takes no more for now."""
        self._is_full = True

    def resume_writing(self) -> None:
        """The system has taken it all."""
        self._is_full = False
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- what the client asks

    @property
    def is_quiet(self) -> bool:
        """True if it is open, and no unexpected input came."""
        came = self._rest or self._lines or self._replies or self._nonsense
        return self._ended is None and not came

    def write(self, data: bytes) -> None:
        """Send it, as soon as can be."""
        self.transport.write(data)

    async def written(self, stage: Stage, limit: timedelta) -> None:
        """Wait until what was written has left; raises if the relay closes or speaks meanwhile."""
        while self._is_full and self.is_quiet:
            await self._change(stage, limit)
        if not self.is_quiet:
            raise self._unasked(stage)

    async def reply(self, stage: Stage, limit: timedelta) -> Reply:
        """The next reply; raises `SmtpError` if it is none, or does not come."""
        while not self._replies:
            if self._nonsense is not None or self._ended is not None:
                raise self._broken(stage)
            await self._change(stage, limit)
        return self._replies.popleft()

    async def _change(self, stage: Stage, limit: timedelta) -> None:
        """Wait until anything happens."""
        self._waiter = self._loop.create_future()
        timer = self._loop.call_later(limit.total_seconds(), self._give_up, self._waiter)
        try:
            await self._waiter
        except TimeoutError:
            raise failures.timed_out(stage) from None
        finally:
            timer.cancel()
            self._waiter = None

    @staticmethod
    def _give_up(waiter: "asyncio.Future[None]") -> None:
        if not waiter.done():
            waiter.set_exception(TimeoutError())

    def _unasked(self, stage: Stage) -> failures.SmtpError:
        return (
            failures.said(stage, self._replies.popleft()) if self._replies else self._broken(stage)
        )

    def _broken(self, stage: Stage) -> failures.SmtpError:
        if self._nonsense is not None:
            return failures.nonsense(stage, self._nonsense)
        return failures.gone(stage, self._ended or "an unfinished reply came unasked")

    # --- the end

    def close(self) -> None:
        """Send what is written, then close."""
        self.transport.close()

    def abort(self) -> None:
        """Close, whatever is still to be sent."""
        self.transport.abort()

    async def closed(self) -> None:
        """Wait until it is closed."""
        await self._closed.wait()

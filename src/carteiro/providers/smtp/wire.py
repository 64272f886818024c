"""The connection itself: commands out, whole replies in, each within its time."""

import asyncio
from collections.abc import Sequence
from math import inf
from typing import cast

from carteiro.providers.smtp import failures
from carteiro.providers.smtp.failures import Reply, Stage

_CODES = {str(code): code for code in range(100, 600)}
_LAST_LINES = {f"{code} ": number for code, number in _CODES.items()}
_CLOSING = 421
_LONGEST_REPLY = 64 * 1024  # bytes, all lines together; longer input is not a reply
_MOST_UNASKED = 10  # replies; a relay that sends more of them is disconnected
_HIGH_WATER = 64 * 1024


class Wire(asyncio.Protocol):
    """One connection. Replies are kept in the order in which they came, until they are asked for.

    It has one timer, not one for each wait: when it fires too early, it is set again.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rest = b""  # of a line that is still coming
        self._lines: list[str] = []
        self._size = 0
        self._replies: list[Reply] = []
        self._wanted = 0  # replies that are waited for
        self._nonsense: str | None = None
        self._ended: str | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._limit = self._deadline = 0.0  # of the wait
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = inf
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
        self.write = transport.write

    def data_received(self, data: bytes) -> None:
        """Take in what came; whole replies can be had."""
        lines, ended, self._rest = (self._rest + data).rpartition(b"\n")
        if ended:
            for line in lines.decode("utf-8", "replace").split("\n"):
                code = None if self._lines else _LAST_LINES.get(line[:4])
                if code is None:
                    self._take_line(line.rstrip("\r"))
                else:  # most replies are one line
                    self._replies.append(Reply(code, line.rstrip("\r")))
        if self._size + len(self._rest) > _LONGEST_REPLY:
            self._break("it has no end")
        elif len(self._replies) > self._wanted + _MOST_UNASKED:
            self._break("more replies than commands")
        self._wake()

    def _take_line(self, line: str) -> None:
        code, mark = _CODES.get(line[:3]), line[3:4]
        if (
            code is None
            or mark not in {"", " ", "-"}
            or (self._lines and line[:3] != self._lines[0][:3])
        ):
            self._nonsense = self._nonsense or line
        elif mark == "-":
            self._lines.append(line)
            self._size += len(line)
        else:
            self._replies.append(Reply(code, "\n".join([*self._lines, line])))
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
        if self._timer is not None:
            self._timer.cancel()
        self._wake()

    def pause_writing(self) -> None:
        """The system takes no more for now."""
        self._is_full = True

    def resume_writing(self) -> None:
        """The system has taken it all."""
        self._is_full = False
        self._wake()

    # --- what the client asks

    @property
    def is_quiet(self) -> bool:
        """True if it is open, and no unexpected input came."""
        came = self._rest or self._lines or self._replies or self._nonsense
        return self._ended is None and not came

    async def written(self, stage: Stage, limit: float) -> None:
        """Wait until what was written has left; raises if the relay closes or speaks meanwhile."""
        while self._is_full and self.is_quiet:
            await self._change((stage,), limit)
        if not self.is_quiet:
            raise failures.said(stage, self._replies[0]) if self._replies else self._broken(stage)

    async def replies(self, stages: Sequence[Stage], limit: float) -> list[Reply]:
        """The replies to as many commands, ``limit`` seconds for each; fewer if a refusal closed the connection.

        Raises `SmtpError` if one is not a reply, or does not come.
        """
        self._wanted = len(stages)
        while len(self._replies) < self._wanted and not self._is_refused:
            if self._is_broken:
                raise self._broken(stages[len(self._replies)])
            await self._change(stages, limit)
        came, self._replies = self._replies[: self._wanted], self._replies[self._wanted :]
        self._wanted = 0
        return came

    @property
    def _is_broken(self) -> bool:
        return self._nonsense is not None or self._ended is not None

    @property
    def _is_refused(self) -> bool:
        """True if no more replies come after a refusal, which says more than the end of the connection."""
        if not self._replies or self._nonsense is not None:
            return False
        last = self._replies[-1]
        return last.code == _CLOSING or (self._ended is not None and last.is_refusal)

    # --- waiting

    async def _change(self, stages: Sequence[Stage], limit: float) -> None:
        """Wait until all the replies came, or anything else happens."""
        self._waiter = self._loop.create_future()
        self._limit = limit
        self._deadline = self._loop.time() + limit
        if self._fires_at > self._deadline:
            self._set_timer()
        try:
            await self._waiter
        except TimeoutError:
            raise failures.timed_out(stages[len(self._replies)]) from None
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is None or self._waiter.done():
            return
        if len(self._replies) >= self._wanted or self._is_broken or self._is_refused:
            self._waiter.set_result(None)
        else:
            self._deadline = self._loop.time() + self._limit

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fires_at = self._deadline
        self._timer = self._loop.call_at(self._deadline, self._look)

    def _look(self) -> None:
        """Give up a wait that is over."""
        self._timer, self._fires_at = None, inf
        if self._waiter is None or self._waiter.done():
            return
        if self._loop.time() < self._deadline:
            self._set_timer()
        else:
            self._waiter.set_exception(TimeoutError())

    def _broken(self, stage: Stage) -> failures.SmtpError:
        if self._nonsense is not None:
            return failures.nonsense(stage, self._nonsense)
        return failures.gone(stage, self._ended or "an unfinished reply came unasked")

    # --- the end

    def _break(self, why: str) -> None:
        self._nonsense = self._nonsense or why
        self.abort()

    def close(self) -> None:
        """Send what is written, then close."""
        self.transport.close()

    def abort(self) -> None:
        """Close, whatever is still to be sent."""
        self.transport.abort()

    async def closed(self) -> None:
        """Wait until it is closed."""
        await self._closed.wait()

"""Pool of connections: limited in number, in mails for each, and in idle time."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable

from carteiro.ports.provider import Handover
from carteiro.providers.smtp.client import Connection
from carteiro.providers.smtp.settings import SmtpSettings

_FAREWELL = 1.0  # seconds that a relay has to close its side


class ConnectionPool:
    """Connections to one relay. Whether one is good shows when it is used; nothing is sent to find out."""

    def __init__(self, opens: Callable[[], Awaitable[Connection]], options: SmtpSettings) -> None:
        self._opens = opens
        self._most = options.connections
        self._mails_each = options.messages_per_connection
        self._idle_seconds = options.idle.total_seconds()
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        self._in_use = 0
        self._idle: list[tuple[float, Connection]] = []  # the one longest idle first
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def take(self, handover: Handover, *, fresh: bool = False) -> Connection:
        """A connection for one mail; ``fresh``: not one that has carried another."""
        passed_on = None
        if self._in_use < self._most:
            self._in_use += 1
        else:
            handover.is_queued = True
            passed_on = await self._next()
            handover.is_queued = False
        try:
            return self._kept(passed_on, fresh=fresh) or await self._opens()
        except BaseException:
            self._pass_on(None)
            raise

    async def _next(self) -> Connection | None:
        """Wait for the end of another mail; its connection, if that can carry one more."""
        waiting: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            return await waiting
        except asyncio.CancelledError:
            if not waiting.cancelled():  # it has come, too late
                self._pass_on(waiting.result())
            raise

    def _kept(self, passed_on: Connection | None, *, fresh: bool) -> Connection | None:
        if passed_on is not None:
            if passed_on.is_usable and not fresh:
                return passed_on
            passed_on.quit()
        if fresh and self._in_use + len(self._idle) > self._most:
            self._idle.pop(0)[1].quit()
        while self._idle and not fresh:
            _, connection = self._idle.pop()
            if connection.is_usable:
                return connection
            connection.abort()
        return None

    def give_back(self, connection: Connection) -> None:
        """Keep it for the next mail if it can carry one."""
        if not connection.is_usable:
            connection.abort()
            self._pass_on(None)
        elif connection.mails >= self._mails_each or self._is_closed:
            connection.quit()
            self._pass_on(None)
        else:
            self._pass_on(connection)

    def _pass_on(self, connection: Connection | None) -> None:
        """Let the next mail begin, over this connection if there is one."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(connection)
                return
        self._in_use -= 1
        if connection is not None:
            self._idle.append((time.monotonic(), connection))
            self._sweep_later()

    def _sweep_later(self) -> None:
        if self._sweep_timer is None:
            wait = self._idle[0][0] + self._idle_seconds - time.monotonic()
            self._sweep_timer = asyncio.get_running_loop().call_later(wait, self._sweep)

    def _sweep(self) -> None:
        """Take leave of what nobody needed for a while."""
        self._sweep_timer = None
        until = time.monotonic() - self._idle_seconds
        while self._idle and self._idle[0][0] <= until:
            self._idle.pop(0)[1].quit()
        if self._idle:
            self._sweep_later()

    async def close(self) -> None:
        """Take leave of all that are idle; those in use follow when they are given back."""
        self._is_closed = True
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        connections = [connection for _, connection in self._idle]
        self._idle.clear()
        for connection in connections:
            connection.quit()
        leaving = [asyncio.ensure_future(connection.closed()) for connection in connections]
        if leaving:
            await asyncio.wait(leaving, timeout=_FAREWELL)
        for connection in connections:
            connection.abort()
        await asyncio.gather(*leaving)
        await asyncio.sleep(0)  # what was aborted before closes in the loop's next turn

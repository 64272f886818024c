"""Wake-up counter that loses no notification: a waiter passes the count that it saw when it last looked for work."""

import asyncio
from datetime import timedelta


class Bell:
    """Rung from the event loop's thread; wakes every waiter."""

    def __init__(self) -> None:
        self._rings = 0
        self._waiting: set[asyncio.Future[bool]] = set()

    def rings(self) -> int:
        """Return the number of rings so far."""
        return self._rings

    def ring(self) -> None:
        """Wake every waiter: there may be work."""
        self._rings += 1
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(True)

    async def wait(self, timeout: timedelta, *, since: int) -> bool:
        """Return True once the count is above ``since``, False after ``timeout``."""
        if self._rings > since:
            return True
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(timeout.total_seconds(), _give_up, waiting)
        self._waiting.add(waiting)
        try:
            return await waiting
        finally:
            self._waiting.discard(waiting)
            timer.cancel()


def _give_up(waiting: "asyncio.Future[bool]") -> None:
    if not waiting.done():
        waiting.set_result(False)

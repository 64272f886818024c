"""Wake-up counter that loses no notification: a waiter says how often it had rung when it last looked for work."""

import asyncio
from datetime import timedelta


class Bell:
    """Rung from the event loop's thread; wakes every waiter."""

    def __init__(self) -> None:
        self._rings = 0
        self._waiting: set[asyncio.Future[bool]] = set()

    def rings(self) -> int:
        """Return how often it has rung."""
        return self._rings

    def ring(self) -> None:
        """Say that there may be work: wake every waiter."""
        self._rings += 1
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(True)

    async def wait(self, timeout: timedelta, *, since: int) -> bool:
        """Return True once it has rung more often than ``since``, False after ``timeout``."""
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

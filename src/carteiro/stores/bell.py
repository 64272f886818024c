"""A bell that nobody misses: who waits says how often it had rung when it last looked for work."""

import asyncio
from datetime import timedelta


class Bell:
    """Rung from the event loop's thread; wakes everybody who waits."""

    def __init__(self) -> None:
        self.rings = 0
        self._waiting: set[asyncio.Future[bool]] = set()

    def ring(self) -> None:
        """Wake everybody."""
        self.rings += 1
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(True)

    async def wait(self, timeout: timedelta, *, since: int) -> bool:
        """Whether it has rung more often than ``since`` before ``timeout`` is over."""
        if self.rings > since:
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

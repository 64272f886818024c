"""Wake-up counter that loses no notification: a waiter passes the count that it saw when it last looked for work."""

import asyncio
from collections.abc import Collection
from datetime import timedelta


class Bell:
    """Rung from the event loop's thread; wakes every waiter."""

    def __init__(self) -> None:
        self._rings = 0
        self._last: dict[str, int] = {}  # the last ring for each kind; "": for all
        self._waiting: dict[asyncio.Future[bool], Collection[str]] = {}

    def rings(self) -> int:
        """Return the number of rings so far."""
        return self._rings

    def ring(self, kinds: Collection[str] = ("",)) -> None:
        """Wake those who wait for one of these kinds, or everybody: there may be work."""
        self._rings += 1
        self._last.update(dict.fromkeys(kinds, self._rings))
        for waiting, wanted in self._waiting.items():
            if not waiting.done() and _is_for(wanted, kinds):
                waiting.set_result(True)

    async def wait(self, timeout: timedelta, *, since: int, kinds: Collection[str] = ()) -> bool:
        """Return True once it has rung after ``since`` for one of the kinds, False after ``timeout``; no kind: any."""
        if any(rung > since and _is_for(kinds, (kind,)) for kind, rung in self._last.items()):
            return True
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(timeout.total_seconds(), _give_up, waiting)
        self._waiting[waiting] = kinds
        try:
            return await waiting
        finally:
            del self._waiting[waiting]
            timer.cancel()


def _is_for(wanted: Collection[str], kinds: Collection[str]) -> bool:
    return not wanted or any(kind in wanted or not kind for kind in kinds)


def _give_up(waiting: "asyncio.Future[bool]") -> None:
    if not waiting.done():
        waiting.set_result(False)

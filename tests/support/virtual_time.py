"""An event loop whose time passes at once: whenever everybody sleeps, it is as late as the next one wakes."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Answer = TypeVar("Answer")


class _Sleepless(selectors.SelectSelector):
    """Never waits: what it was to wait for is added to its time."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready; if nothing is, the time passes."""
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everybody waits for somebody else"
            self.now += max(0.0, timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """For what needs nothing from outside: no sockets, no threads."""

    def __init__(self) -> None:
        self._sleepless = _Sleepless()
        super().__init__(self._sleepless)

    def time(self) -> float:
        """The virtual now, in seconds."""
        return self._sleepless.now


def run_virtually(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Run it to its end, however long that takes there."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)

"""An event loop whose time passes at once: when all tasks sleep, it jumps to the next wake-up."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Answer = TypeVar("Answer")


class _Sleepless(selectors.SelectSelector):
    """Never waits: the time to wait is added to its clock."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The ready events; if there are none, the time passes."""
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everybody waits for somebody else"
            self.now += max(0.0, timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """For code without sockets and threads."""

    def __init__(self) -> None:
        self._sleepless = _Sleepless()
        super().__init__(self._sleepless)

    def time(self) -> float:
        """The virtual now, in seconds."""
        return self._sleepless.now


def run_virtually(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Run it to its end, for any virtual duration."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)

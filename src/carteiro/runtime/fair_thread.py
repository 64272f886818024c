"""Fair use of a process: tenants take turns in a thread, and long work yields to the event loop."""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from threading import Lock
from typing import Any, TypeVar

from carteiro.policy.addresses import Unusual

_T = TypeVar("_T")

_MOST_ITEMS = 20
_MOST_BYTES = 64 * 1024
_MOST_UNUSUAL = 10  # addresses, half a millisecond each


class Turns:
    """Round robin in one executor: everyone with waiting work has a turn before anyone has a second one."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._lock = Lock()
        self._waiting: dict[Hashable, deque[tuple[Future[Any], Callable[[], Any]]]] = {}

    async def take(self, whose: Hashable, work: Callable[[], _T]) -> _T:
        """Return the result of the work, run when its turn comes; if cancelled before, it does not run."""
        future: Future[_T] = Future()
        with self._lock:
            self._waiting.setdefault(whose, deque()).append((future, work))
        self._executor.submit(self._next)
        return await asyncio.wrap_future(future)

    def _next(self) -> None:
        """Run one piece of work; there is one call for each."""
        with self._lock:
            whose = next(iter(self._waiting))
            waiting = self._waiting.pop(whose)
            future, work = waiting.popleft()
            if waiting:
                self._waiting[whose] = waiting  # behind all others
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
            future.set_exception(error)


class Slice:
    """Limit of work on the event loop before it yields: items, their bytes, and unusual addresses."""

    __slots__ = ("_bytes", "_items", "_unusual")

    def __init__(self) -> None:
        self._begin()

    def spend(self, size: int = 0) -> bool:
        """Count an item of this size in bytes; True once the slice is used up: then `pause`."""
        self._items += 1
        self._bytes += size
        return (
            self._items >= _MOST_ITEMS
            or self._bytes >= _MOST_BYTES
            or Unusual.judged - self._unusual >= _MOST_UNUSUAL
        )

    async def pause(self) -> None:
        """Yield to the event loop, and begin the next slice."""
        await asyncio.sleep(0)
        self._begin()

    def _begin(self) -> None:
        self._items = self._bytes = 0
        self._unusual = Unusual.judged

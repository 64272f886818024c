"""Fair shares of a process: tenants take turns in a thread, and long work on the event loop lets others in."""

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
    """Work of many in one executor: everybody with work waiting has a turn before anybody has a second one."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._lock = Lock()
        self._waiting: dict[Hashable, deque[tuple[Future[Any], Callable[[], Any]]]] = {}

    async def take(self, whose: Hashable, work: Callable[[], _T]) -> _T:
        """The result of the work, done when its turn has come; cancelled before that, it is not done."""
        future: Future[_T] = Future()
        with self._lock:
            self._waiting.setdefault(whose, deque()).append((future, work))
        self._executor.submit(self._next)
        return await asyncio.wrap_future(future)

    def _next(self) -> None:
        """Do one piece of work: there are as many calls as there are pieces."""
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
        except BaseException as error:  # noqa: BLE001 - it is for who waits for the result
            future.set_exception(error)


class Slice:
    """How much is done on the event loop before others have a turn: items, their bytes, and unusual addresses."""

    __slots__ = ("_bytes", "_items", "_unusual")

    def __init__(self) -> None:
        self._begin()

    async def done(self, size: int = 0) -> None:
        """Count an item of this many bytes; let others have a turn once the slice is used up."""
        self._items += 1
        self._bytes += size
        if (
            self._items >= _MOST_ITEMS
            or self._bytes >= _MOST_BYTES
            or Unusual.judged - self._unusual >= _MOST_UNUSUAL
        ):
            await asyncio.sleep(0)
            self._begin()

    def _begin(self) -> None:
        self._items = self._bytes = 0
        self._unusual = Unusual.judged

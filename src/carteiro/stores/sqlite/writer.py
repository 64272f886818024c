"""The one writer: a thread that drains whatever is asked into one transaction, one commit, then answers all.

Its life: `start` opens the connection in its own thread; each `do` queues an operation; the thread
takes all that is queued, runs each under a savepoint and commits once; `stop` drains and closes.
While idle, and while somebody waits for work, it looks whether another process changed the file.

Killed before the commit: nothing was written and nobody was answered. Killed after it: written, and
whoever asks again gets the same answer, because operations are idempotent.
"""

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from carteiro.errors import StoreUnavailable
from carteiro.stores.sqlite.opening import connect, migrate, translated

Result = TypeVar("Result")
Operation = Callable[[sqlite3.Connection], Result]

_MOST_OPERATIONS = 500  # in one transaction
_POLL_BUSY_S, _POLL_IDLE_S = 0.001, 0.020
_BUSY_FOR_S = 2.0  # poll fast while another process changed something within it


class _Asked(NamedTuple):
    operation: Operation[Any]
    durable: bool
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[Any]"


class Writer:
    """Runs operations one transaction at a time, in a thread of its own."""

    def __init__(
        self,
        path: Path,
        *,
        busy_timeout_ms: int,
        has_work: Operation[bool],
        changed_elsewhere: Callable[[], None],
    ) -> None:
        self._path = path
        self._has_work = has_work
        self._busy_timeout_ms = busy_timeout_ms
        self._changed_elsewhere = changed_elsewhere
        self._asked: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="carteiro-writer", daemon=True)
        self._opened: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._is_stopped = False
        self._connection: sqlite3.Connection
        self._is_full = True  # PRAGMA synchronous as it stands
        self._seen_version = 0
        self._last_change = 0.0
        self._watchers = 0  # how many wait for changes of other processes
        self._loop: asyncio.AbstractEventLoop

    async def start(self) -> None:
        """Open the file and bring its schema up to date."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        error = await asyncio.to_thread(self._opened.get)
        if error is not None:
            raise error

    async def stop(self) -> None:
        """Finish what is queued, then close."""
        self._is_stopped = True
        self._asked.put(None)
        await asyncio.to_thread(self._thread.join)

    async def do(self, operation: Operation[Result], *, durable: bool = True) -> Result:
        """Run it in the next transaction; the answer comes after the commit.

        A caller that goes away cancels nothing: the operation is written all the same.
        """
        if self._is_stopped:
            text = f"{self._path} is closed"
            raise StoreUnavailable(text)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()
        self._asked.put(_Asked(operation, durable, loop, answer))
        return await answer

    def watch(self, more: int) -> None:
        """So many more (or fewer) callers wait for changes of other processes."""
        self._watchers += more
        if more > 0 and self._watchers == more:
            self._asked.put(_NUDGE)  # the idle thread must start looking

    def _run(self) -> None:
        try:
            self._connection = connect(self._path, busy_timeout_ms=self._busy_timeout_ms)
            migrate(self._connection, self._path)
            self._seen_version = self._data_version()
        except BaseException as error:  # noqa: BLE001 - handed to whoever opens the store
            self._opened.put(error)
            return
        self._opened.put(None)
        try:
            while (batch := self._next_batch()) is not None:
                if batch:
                    self._write(batch)
        finally:
            self._connection.close()

    def _next_batch(self) -> list[_Asked] | None:
        first = self._first()
        if first is None:
            return None
        batch = [first] if first is not _NUDGE else []
        while len(batch) < _MOST_OPERATIONS:
            try:
                another = self._asked.get_nowait()
            except queue.Empty:
                break
            if another is None:
                self._asked.put(None)  # stop after this batch
                break
            if another is not _NUDGE:
                batch.append(another)
        return batch

    def _first(self) -> _Asked | None:
        while self._watchers:
            is_busy = time.monotonic() - self._last_change < _BUSY_FOR_S
            try:
                return self._asked.get(timeout=_POLL_BUSY_S if is_busy else _POLL_IDLE_S)
            except queue.Empty:
                self._look_for_changes()
        return self._asked.get()

    def _look_for_changes(self) -> None:
        version = self._data_version()
        if version == self._seen_version:
            return
        self._seen_version = version
        self._last_change = time.monotonic()
        if self._has_work(self._connection):
            _hop(self._loop, self._changed_elsewhere)

    def _data_version(self) -> int:
        try:
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error:
            return self._seen_version  # a broken file shows itself on the next write

    def _write(self, batch: list[_Asked]) -> None:
        try:
            self._begin(durable=any(asked.durable for asked in batch))
            results = [self._attempt(asked, alone=len(batch) == 1) for asked in batch]
            self._connection.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001 - answered to every caller of the batch
            self._roll_back()
            results = [(None, error)] * len(batch)
        _answer(batch, [(result, self._in_our_words(error)) for result, error in results])

    def _begin(self, *, durable: bool) -> None:
        if durable != self._is_full:  # a lost claim is harmless: no need to wait for the disk
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._is_full = durable
        self._connection.execute("BEGIN IMMEDIATE")

    def _attempt(self, asked: _Asked, *, alone: bool) -> tuple[Any, BaseException | None]:
        if alone:
            return asked.operation(self._connection), None
        self._connection.execute("SAVEPOINT operation")
        try:
            result = asked.operation(self._connection)
        except Exception as error:
            if not self._connection.in_transaction:  # SQLite gave the whole transaction up
                raise
            self._connection.execute("ROLLBACK TO operation")
            self._connection.execute("RELEASE operation")
            return None, error
        self._connection.execute("RELEASE operation")
        return result, None

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._reopen()

    def _reopen(self) -> None:
        """A connection that cannot even roll back is thrown away; what it had not committed is undone by the file."""
        self._connection.close()
        self._connection = connect(self._path, busy_timeout_ms=self._busy_timeout_ms)
        self._is_full = True

    def _in_our_words(self, error: BaseException | None) -> BaseException | None:
        return translated(error, self._path) if isinstance(error, sqlite3.Error) else error


_NUDGE: Any = object()


def _answer(batch: list[_Asked], results: list[tuple[Any, BaseException | None]]) -> None:
    """One hop back per event loop, not per caller."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Asked, Any, BaseException | None]]] = {}
    for asked, (result, error) in zip(batch, results, strict=True):
        by_loop.setdefault(asked.loop, []).append((asked, result, error))
    for loop, answers in by_loop.items():
        _hop(loop, _deliver, answers)


def _hop(
    loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *arguments: object
) -> None:
    try:
        loop.call_soon_threadsafe(callback, *arguments)
    except RuntimeError:
        return  # the loop was closed: nobody is left to be told


def _deliver(answers: list[tuple[_Asked, Any, BaseException | None]]) -> None:
    for asked, result, error in answers:
        if asked.answer.done():
            continue
        if error is None:
            asked.answer.set_result(result)
        else:
            asked.answer.set_exception(error)

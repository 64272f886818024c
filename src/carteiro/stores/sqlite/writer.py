"""The single writer: operations that arrive during a commit share the next transaction; then all are answered.

Its life: `start` opens the file; each `do` queues an operation; the event loop runs queued ones for about 10 ms,
each under a savepoint, and lets a thread commit, so that only the callers wait for the disk; `stop` drains and closes.
While somebody waits for work, it polls for changes of other processes.

The operations run on the loop's own thread: another thread would compete with the loop for the interpreter's lock and
the caches, and both would take half as long again. Only blocking work (the disk, another process's lock) has a thread.

If killed before the commit, nothing was written and no answer was given. If killed after it, a second request gets the
same answer, because operations are idempotent.
"""

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from carteiro.errors import StoreUnavailable
from carteiro.stores.sqlite.opening import connect, migrate, translated

Result = TypeVar("Result")
Operation = Callable[[sqlite3.Connection], Result]

_MOST_OPERATIONS = 500  # in one transaction
_MOST_WORK_S = 0.010  # in one transaction, before the event loop runs again
_POLL_BUSY_S, _POLL_IDLE_S = 0.001, 0.020
_BUSY_FOR_S = 2.0  # poll fast if another process changed something in this time


class _Asked(NamedTuple):
    operation: Operation[Any]
    durable: bool
    answer: "asyncio.Future[Any]"


class Writer:
    """Runs operations one transaction at a time. It belongs to the event loop that started it."""

    def __init__(  # noqa: PLR0913 - wired in one place
        self,
        path: Path,
        *,
        busy_timeout_ms: int,
        durable: bool = True,
        has_work: Operation[bool],
        changed_elsewhere: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._busy_timeout_ms = busy_timeout_ms
        self._is_durable = durable
        self._has_work = has_work
        self._changed_elsewhere = changed_elsewhere
        self._clock = clock
        self._asked: deque[_Asked] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="carteiro-writer")
        self._is_stopped = False
        self._loop: asyncio.AbstractEventLoop
        self._connection: sqlite3.Connection
        self._is_full = True  # current PRAGMA synchronous
        self._watchers = 0  # number of callers that wait for changes of other processes
        self._look: asyncio.TimerHandle | None = None
        self._seen_version = 0
        self._last_change = 0.0

    async def start(self) -> None:
        """Open the file and bring its schema up to date."""
        self._loop = asyncio.get_running_loop()
        try:
            await self._in_thread(self._open)
        except BaseException:
            self._thread.shutdown(wait=True)
            raise

    async def stop(self) -> None:
        """Finish queued operations, then close."""
        self._is_stopped = True
        while self._writing is not None:
            await asyncio.wait([self._writing])
        if self._look is not None:
            self._look.cancel()
        await self._in_thread(self._connection.close)
        self._thread.shutdown(wait=True)

    async def do(self, operation: Operation[Result], *, durable: bool = True) -> Result:
        """Run the operation in the next transaction; return after the commit.

        Cancelling the caller does not cancel the operation: it is written all the same.
        """
        if self._is_stopped:
            raise StoreUnavailable(f"{self._path} is closed")
        answer: asyncio.Future[Result] = self._loop.create_future()
        self._asked.append(_Asked(operation, durable, answer))
        if self._writing is None:
            self._writing = self._loop.create_task(self._write_all())
        return await answer

    def watch(self, more: int) -> None:
        """Add to the number of callers that wait for changes of other processes."""
        self._watchers += more
        if self._watchers and self._look is None:
            self._look = self._loop.call_later(_POLL_IDLE_S, self._look_for_changes)

    # --- writing

    async def _write_all(self) -> None:
        try:
            await asyncio.sleep(0)  # callers in the same turn of the loop still join
            while self._asked:
                most = min(len(self._asked), _MOST_OPERATIONS)
                await self._write([self._asked.popleft() for _ in range(most)])
        finally:
            self._writing = None

    async def _write(self, batch: list[_Asked]) -> None:
        try:
            await self._begin(durable=any(asked.durable for asked in batch))
            results = self._attempt_all(batch)
            self._asked.extendleft(reversed(batch[len(results) :]))
            batch = batch[: len(results)]
            await self._in_thread(lambda: self._connection.execute("COMMIT"))
        except Exception as error:  # noqa: BLE001 - answered to every caller of the batch
            results = [(None, await self._undo(error))] * len(batch)
        for asked, (result, failure) in zip(batch, results, strict=True):
            self._answer(asked, result, failure)

    async def _begin(self, *, durable: bool) -> None:
        # Losing a claim is harmless: no need to wait for the disk.
        if self._is_durable and durable != self._is_full:
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._is_full = durable
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            await self._in_thread(self._begin_patiently)

    def _begin_patiently(self) -> None:
        """Wait for another process's write, in the thread."""
        self._connection.execute(f"PRAGMA busy_timeout = {self._busy_timeout_ms}")
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        finally:
            self._connection.execute("PRAGMA busy_timeout = 0")

    def _attempt_all(self, batch: list[_Asked]) -> list[tuple[Any, Exception | None]]:
        """The results in order, of fewer operations if they take long."""
        if len(batch) == 1:
            return [(batch[0].operation(self._connection), None)]
        results = []
        until = self._clock() + _MOST_WORK_S
        for asked in batch:
            results.append(self._attempt(asked))
            if self._clock() >= until:
                break
        return results

    def _attempt(self, asked: _Asked) -> tuple[Any, Exception | None]:
        self._connection.execute("SAVEPOINT operation")
        try:
            result = asked.operation(self._connection)
        except Exception as error:
            if not self._connection.in_transaction:  # SQLite rolled back the whole transaction
                raise
            self._connection.execute("ROLLBACK TO operation")
            self._connection.execute("RELEASE operation")
            return None, error
        self._connection.execute("RELEASE operation")
        return result, None

    async def _undo(self, error: Exception) -> Exception:
        """Roll back; return the error to raise, a worse one if the rollback failed."""
        try:
            await self._in_thread(self._roll_back)
        except Exception as worse:  # noqa: BLE001 - raised for every caller of the batch
            return worse
        return error

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            # A connection that cannot roll back is replaced: the file undoes uncommitted changes.
            self._connection.close()
            self._open()

    def _answer(self, asked: _Asked, result: object, failure: Exception | None) -> None:
        if asked.answer.done():
            return
        if failure is None:
            asked.answer.set_result(result)
        elif isinstance(failure, sqlite3.Error | UnicodeEncodeError):
            asked.answer.set_exception(translated(failure, self._path))
        else:
            asked.answer.set_exception(failure)

    # --- the file

    def _open(self) -> None:
        self._connection = connect(
            self._path, busy_timeout_ms=self._busy_timeout_ms, durable=self._is_durable
        )
        migrate(self._connection, self._path)
        self._connection.execute("PRAGMA busy_timeout = 0")  # the loop never waits for a lock
        self._is_full = True
        self._seen_version = self._data_version()

    def _look_for_changes(self) -> None:
        """Ring if another process changed the file; our own changes do not count here."""
        self._look = None
        if not self._watchers:
            return
        if self._writing is None:  # else the connection is busy with other work
            version = self._data_version()
            if version != self._seen_version:
                self._seen_version = version
                self._last_change = time.monotonic()
                if self._has_work(self._connection):
                    self._changed_elsewhere()
        is_busy = time.monotonic() - self._last_change < _BUSY_FOR_S
        wait = _POLL_BUSY_S if is_busy else _POLL_IDLE_S
        self._look = self._loop.call_later(wait, self._look_for_changes)

    def _data_version(self) -> int:
        try:
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error:
            return self._seen_version  # the next write reports a broken file

    async def _in_thread(self, call: Callable[[], object]) -> None:
        await self._loop.run_in_executor(self._thread, call)

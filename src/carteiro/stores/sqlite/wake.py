"""How an idle worker learns that there may be work: an event in this process, a look at the file for others."""

import asyncio
import sqlite3
from datetime import timedelta

from carteiro.stores.sqlite.rows import run
from carteiro.stores.sqlite.writer import Writer


class SqliteWake:
    """Rung by every change of ours that may ready a job, and by the writer when another process changed the file."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[bool]] = set()
        self._was_rung = False
        self._writer: Writer | None = None
        self._next_alarm: int | None = None  # the writer's thread alone looks at it

    def attach(self, writer: Writer) -> None:
        """The writer looks for changes of other processes while somebody waits."""
        self._writer = writer

    def has_work(self, db: sqlite3.Connection) -> bool:
        """Another process changed the file: is there work, or will there be sooner than we knew?"""
        try:
            is_in_ring, alarm = run(db, "wake_look").fetchone()
        except sqlite3.Error:
            return True  # let the claim find out
        is_sooner = alarm is not None and (self._next_alarm is None or alarm < self._next_alarm)
        self._next_alarm = alarm
        return bool(is_in_ring) or is_sooner

    def ring(self) -> None:
        """There may be work. From the event loop's thread only; the writer hops over first."""
        self._was_rung = True
        for waiting in list(self._waiting):
            if not waiting.done():
                waiting.set_result(True)

    async def wait(self, timeout: timedelta) -> bool:
        """Return True when there may be work (also without cause), False after ``timeout``."""
        if self._was_rung:
            self._was_rung = False
            return True
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(timeout.total_seconds(), _give_up, waiting)
        self._waiting.add(waiting)
        self._watch(+1)
        try:
            return await waiting
        finally:
            self._watch(-1)
            self._waiting.discard(waiting)
            timer.cancel()
            self._was_rung = False

    def _watch(self, more: int) -> None:
        if self._writer is not None:
            self._writer.watch(more)


def _give_up(waiting: "asyncio.Future[bool]") -> None:
    if not waiting.done():
        waiting.set_result(False)

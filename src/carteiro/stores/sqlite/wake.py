"""How an idle worker learns that there may be work: a bell in this process, a look at the file for others."""

import sqlite3
from datetime import timedelta

from carteiro.stores.bell import Bell
from carteiro.stores.sqlite.rows import run
from carteiro.stores.sqlite.writer import Writer


class SqliteWake:
    """Rung by every change of ours that may ready a job, and by the writer when another process changed the file."""

    def __init__(self) -> None:
        self._bell = Bell()
        self._writer: Writer | None = None
        self._next_alarm: int | None = None

    def attach(self, writer: Writer) -> None:
        """The writer looks for changes of other processes while somebody waits."""
        self._writer = writer

    def has_work(self, db: sqlite3.Connection) -> bool:
        """Tell whether there is work, or will be sooner than we knew, now that another process changed the file."""
        try:
            is_in_ring, alarm = run(db, "wake_look").fetchone()
        except sqlite3.Error:
            return True  # let the claim find out
        is_sooner = alarm is not None and (self._next_alarm is None or alarm < self._next_alarm)
        self._next_alarm = alarm
        return bool(is_in_ring) or is_sooner

    def ring(self) -> None:
        """There may be work."""
        self._bell.ring()

    def rings(self) -> int:
        """How often it has rung."""
        return self._bell.rings

    async def wait(self, timeout: timedelta, *, since: int) -> bool:
        """Return True once it has rung more often than ``since``, False after ``timeout``."""
        self._watch(+1)
        try:
            return await self._bell.wait(timeout, since=since)
        finally:
            self._watch(-1)

    def _watch(self, more: int) -> None:
        if self._writer is not None:
            self._writer.watch(more)

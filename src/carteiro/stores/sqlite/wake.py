"""How an idle worker learns that there may be work: a bell in this process, a look at the file for others."""

import sqlite3
from collections.abc import Collection, Sequence
from datetime import timedelta

from carteiro.stores.bell import Bell
from carteiro.stores.columns import FAR
from carteiro.stores.sqlite.rows import run
from carteiro.stores.sqlite.writer import Writer


class SqliteWake(Bell):
    """Rung by every change of ours that may ready a job, and by the writer when another process changed the file."""

    def __init__(self) -> None:
        super().__init__()
        self._writer: Writer | None = None
        self._alarms: dict[str, int] = {}  # of each kind the next, when last looked at

    def attach(self, writer: Writer) -> None:
        """The writer looks for changes of other processes while somebody waits."""
        self._writer = writer

    def has_work(self, db: sqlite3.Connection) -> bool:
        """Tell whether there is work, or will be sooner than we knew, now that another process changed the file."""
        try:
            rows = run(db, "wake_look").fetchall()
        except sqlite3.Error:
            return True  # let the claim find out
        return any(is_in_ring for _, is_in_ring, _ in rows) or bool(self._sooner(rows))

    def found_nothing(self, db: sqlite3.Connection, kinds: Collection[str]) -> None:
        """Remember what a claim of these kinds saw that got no job: what comes sooner than that is news.

        What is news to other kinds is rung now: their turn to look will find it no news any more.
        """
        if self._sooner(run(db, "wake_look").fetchall()) - set(kinds):
            self.ring()

    def _sooner(self, rows: Sequence[tuple[str, int, int | None]]) -> set[str]:
        """The kinds whose next alarm is sooner than it was when last looked at."""
        alarms = {kind: FAR if alarm is None else alarm for kind, _, alarm in rows}
        sooner = {kind for kind, alarm in alarms.items() if alarm < self._alarms.get(kind, FAR)}
        self._alarms = alarms
        return sooner

    async def tell(self) -> None:
        """There may be work: here; other processes look at the file."""
        self.ring()

    async def wait(self, timeout: timedelta, *, since: int) -> bool:
        """Return True once it has rung more often than ``since``, False after ``timeout``."""
        self._watch(+1)
        try:
            return await super().wait(timeout, since=since)
        finally:
            self._watch(-1)

    def _watch(self, more: int) -> None:
        if self._writer is not None:
            self._writer.watch(more)

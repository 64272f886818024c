"""Wake-up of idle workers: a bell in this process, polling the file for others."""

import sqlite3
from collections.abc import Collection, Sequence
from datetime import timedelta

from carteiro.stores.bell import Bell
from carteiro.stores.columns import FAR
from carteiro.stores.sqlite.rows import run
from carteiro.stores.sqlite.writer import Writer


class SqliteWake(Bell):
    """Rings after every change of ours that may make a job ready, and when another process changed the file."""

    def __init__(self) -> None:
        super().__init__()
        self._writer: Writer | None = None
        self._alarms: dict[str, int] = {}  # next alarm of each kind, as last read

    def attach(self, writer: Writer) -> None:
        """Let the writer poll for changes of other processes while somebody waits."""
        self._writer = writer

    def has_work(self, db: sqlite3.Connection) -> bool:
        """Return whether another process's change brought work, or an earlier alarm."""
        try:
            rows = run(db, "wake_look").fetchall()
        except sqlite3.Error:
            return True  # a claim will report the error
        return any(is_in_ring for _, is_in_ring, _ in rows) or bool(self._sooner(rows))

    def found_nothing(self, db: sqlite3.Connection, kinds: Collection[str]) -> None:
        """Remember the next alarm that an empty claim of these kinds saw: only an earlier one is news.

        News for other kinds rings now: at their own next look it would not be new any more.
        """
        if self._sooner(run(db, "wake_look").fetchall()) - set(kinds):
            self.ring()

    def _sooner(self, rows: Sequence[tuple[str, int, int | None]]) -> set[str]:
        """The kinds whose next alarm is earlier than when last read."""
        alarms = {kind: FAR if alarm is None else alarm for kind, _, alarm in rows}
        sooner = {kind for kind, alarm in alarms.items() if alarm < self._alarms.get(kind, FAR)}
        self._alarms = alarms
        return sooner

    async def tell(self) -> None:
        """Wake workers here: there may be work. Other processes poll the file."""
        self.ring()

    async def wait(self, timeout: timedelta, *, since: int, kinds: Collection[str] = ()) -> bool:
        """Return True after a notification for one of the kinds (also without cause), False after ``timeout``."""
        self._watch(+1)
        try:
            return await super().wait(timeout, since=since, kinds=kinds)
        finally:
            self._watch(-1)

    def _watch(self, more: int) -> None:
        if self._writer is not None:
            self._writer.watch(more)

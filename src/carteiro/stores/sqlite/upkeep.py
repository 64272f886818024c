"""Slow work in small pages on SQLite."""

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from carteiro.ports.upkeep import Pruned
from carteiro.stores.sql.upkeep import SqlUpkeep
from carteiro.stores.sqlite import copying
from carteiro.stores.sqlite.database import SqliteDatabase
from carteiro.stores.sqlite.ledger import SqliteEntries
from carteiro.stores.sqlite.opening import INCREMENTAL
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.wake import SqliteWake
from carteiro.stores.sqlite.writer import Writer

_MOST_PAGES_BACK = 500  # in one transaction: two megabytes, some milliseconds


class SqliteUpkeep(SqlUpkeep):
    """See `carteiro.ports.upkeep.Upkeep` for what it promises."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a store
        self,
        db: SqliteDatabase,
        entries: SqliteEntries,
        wake: SqliteWake,
        writer: Writer,
        path: Path,
        options: SqliteOptions,
    ) -> None:
        super().__init__(db, entries, wake)
        self._writer = writer
        self._path = path
        self._busy_ms = options.busy_timeout_ms

    async def prune(self, **asked: Any) -> Pruned:  # noqa: ANN401 - as the port has it
        """As in every SQL store; also return free pages to the disk."""
        pruned = await super().prune(**asked)
        has_more = await self._writer.do(_shrink)
        return replace(pruned, has_more=pruned.has_more or has_more)

    async def backup(self, target: Path, progress: Callable[[float], None]) -> None:
        """Copy the store as of one moment to a new file; ``progress`` gets the fraction done."""
        loop, is_over = asyncio.get_running_loop(), False

        def tell(share: float) -> None:
            if is_over:  # the caller was cancelled: stop the copy
                raise InterruptedError
            loop.call_soon_threadsafe(progress, share)

        try:
            await asyncio.to_thread(copying.copy, self._path, target, tell, busy_ms=self._busy_ms)
        finally:
            is_over = True

    async def compact(self) -> int:
        """Return all free space to the disk at once, and return the number of bytes; other writers wait."""
        return await asyncio.to_thread(copying.vacuum, self._path, busy_ms=self._busy_ms)


def _shrink(db: sqlite3.Connection) -> bool:
    """Return some free pages to the disk, but keep a tenth of the file for new rows; True if there are more.

    A file made by an older release keeps its free pages until it is compacted.
    """
    if _pragma(db, "auto_vacuum") != INCREMENTAL:
        return False
    spare = _pragma(db, "freelist_count") - _pragma(db, "page_count") // 10
    if spare <= 0:
        return False
    for _ in range(min(spare, _MOST_PAGES_BACK)):
        # It returns one page per step, whatever number is requested.
        db.execute("PRAGMA incremental_vacuum(1)")
    return spare > _MOST_PAGES_BACK


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])

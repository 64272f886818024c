"""Slow work in small pages on SQLite."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from carteiro.model import MessageId
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.policy.quota import KEY_LIFE_MS
from carteiro.ports.upkeep import Pruned
from carteiro.stores.columns import maybe_moment
from carteiro.stores.sqlite import copying, ledger
from carteiro.stores.sqlite.erasing import forget_messages
from carteiro.stores.sqlite.opening import INCREMENTAL
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.reader import Reader
from carteiro.stores.sqlite.rows import as_json, run
from carteiro.stores.sqlite.wake import SqliteWake
from carteiro.stores.sqlite.writer import Writer

_MOST_PAGES_BACK = 500  # in one transaction: two megabytes, some milliseconds


class SqliteUpkeep:
    """See `carteiro.ports.upkeep.Upkeep` for what it promises."""

    def __init__(
        self, writer: Writer, reader: Reader, wake: SqliteWake, path: Path, options: SqliteOptions
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._wake = wake
        self._path = path
        self._options = options

    async def expire(self, *, limit: int) -> int:
        """Expire at most ``limit`` messages that waited beyond their time; return how many."""
        clock, ttl_ms = self._options.clock, self._options.dead_letter_ttl_ms
        expired, has_work = await self._writer.do(
            lambda db: ledger.expire(db, limit, clock(), dead_letter_ttl_ms=ttl_ms)
        )
        if has_work:
            self._wake.ring()
        return expired

    async def prune(
        self,
        *,
        bodies: timedelta | None,
        histories: timedelta | None,
        after: MessageId | None = None,
        limit: int = 1000,
    ) -> Pruned:
        """Look at the next ``limit`` messages and drop what is older than its retention."""
        now = self._options.clock()
        before = {
            "bodies_before": None if bodies is None else now - bodies // MILLISECOND,
            "histories_before": None if histories is None else now - histories // MILLISECOND,
        }
        keeps_all = bodies is None and histories is None

        def page(db: sqlite3.Connection) -> Pruned:
            keys = run(db, "prune_keys", before=now - KEY_LIFE_MS, limit=limit).rowcount
            run(db, "prune_counts", now=now)
            run(db, "prune_suppressions", now=now, limit=limit)
            rows = [] if keeps_all else _aged(db, after=after or "", limit=limit, **before)
            dropped, forgotten = _drop_aged(db, rows)
            end = rows[-1][0] if len(rows) == limit else None
            has_more = _shrink(db) or keys == limit
            return Pruned(dropped, forgotten, end, keys, has_more=has_more)

        return await self._writer.do(page)

    async def backup(self, target: Path, progress: Callable[[float], None]) -> None:
        """Copy the file as it is at one moment to a new one, in a thread; others write on meanwhile."""
        loop, is_over = asyncio.get_running_loop(), False

        def tell(share: float) -> None:
            if is_over:  # whoever asked has gone: the copy ends here
                raise InterruptedError
            loop.call_soon_threadsafe(progress, share)

        busy_ms = self._options.busy_timeout_ms
        try:
            await asyncio.to_thread(copying.copy, self._path, target, tell, busy_ms=busy_ms)
        finally:
            is_over = True

    async def compact(self) -> int:
        """Write the file anew without its free pages, in a thread; others wait meanwhile."""
        busy_ms = self._options.busy_timeout_ms
        return await asyncio.to_thread(copying.vacuum, self._path, busy_ms=busy_ms)

    async def lead(self, name: str, *, holder: str, term: timedelta) -> bool:
        """Take or renew the lead of a task for ``term``; False while another has it."""
        clock, term_ms = self._options.clock, term // MILLISECOND

        def take(db: sqlite3.Connection) -> bool:
            now = clock()
            row = run(db, "lead", name=name, holder=holder, now=now, until=now + term_ms).fetchone()
            return row is not None

        return await self._writer.do(take)

    async def last_seen(self) -> datetime | None:
        """When a worker or a run from cron last led a task of upkeep; None: never."""
        [at] = await self._reader.ask(lambda db: run(db, "last_seen").fetchone())
        return maybe_moment(at)


def _aged(db: sqlite3.Connection, **asked: object) -> list[Any]:
    """The next page of messages: id, whether the body is past its retention, whether the history is."""
    return run(db, "prune_find", **asked).fetchall()


def _drop_aged(db: sqlite3.Connection, rows: Sequence[Any]) -> tuple[int, int]:
    """Drop what is past its retention; return how many bodies and how many histories."""
    histories = [row[0] for row in rows if row[2]]
    bodies = [row[0] for row in rows if row[1] and not row[2]]
    run(db, "prune_inbox", ids=as_json(bodies))
    dropped = run(db, "prune_contents", ids=as_json(bodies)).rowcount
    if histories:
        forget_messages(db, histories)
    return dropped, len(histories)


def _shrink(db: sqlite3.Connection) -> bool:
    """Give some free pages back, but for a tenth of the file, which fills again soon; True if there are more.

    A file made by an older release keeps its free pages for itself until it is compacted.
    """
    if _pragma(db, "auto_vacuum") != INCREMENTAL:
        return False
    spare = _pragma(db, "freelist_count") - _pragma(db, "page_count") // 10
    if spare <= 0:
        return False
    for _ in range(min(spare, _MOST_PAGES_BACK)):
        db.execute("PRAGMA incremental_vacuum(1)")  # gives back one, whatever number is asked for
    return spare > _MOST_PAGES_BACK


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])

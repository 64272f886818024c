"""Slow work in small pages on SQLite."""

import sqlite3
from datetime import timedelta

from carteiro.model import MessageId
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.ports.upkeep import Pruned
from carteiro.stores.sqlite import ledger
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.rows import as_json, run
from carteiro.stores.sqlite.wake import SqliteWake
from carteiro.stores.sqlite.writer import Writer


class SqliteUpkeep:
    """See `carteiro.ports.upkeep.Upkeep` for what it promises."""

    def __init__(self, writer: Writer, wake: SqliteWake, options: SqliteOptions) -> None:
        self._writer = writer
        self._wake = wake
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
        bodies_before = None if bodies is None else now - bodies // MILLISECOND
        histories_before = None if histories is None else now - histories // MILLISECOND

        def page(db: sqlite3.Connection) -> Pruned:
            rows = run(
                db,
                "prune_find",
                after=after or "",
                limit=limit,
                bodies_before=bodies_before,
                histories_before=histories_before,
            ).fetchall()
            old_bodies = [row[0] for row in rows if row[1]]
            old_histories = [row[0] for row in rows if row[2]]
            run(db, "prune_inbox", ids=as_json(old_bodies + old_histories))
            bodies_only = sorted(set(old_bodies).difference(old_histories))
            dropped = run(db, "prune_contents", ids=as_json(bodies_only)).rowcount
            if old_histories:
                run(db, "prune_contents", ids=as_json(old_histories))
                run(db, "prune_events", ids=as_json(old_histories))
                run(db, "prune_messages", ids=as_json(old_histories))
            end = rows[-1][0] if len(rows) == limit else None
            return Pruned(dropped, len(old_histories), end)

        return await self._writer.do(page)

    async def lead(self, name: str, *, holder: str, term: timedelta) -> bool:
        """Take or renew the lead of a task for ``term``; False while another has it."""
        clock, term_ms = self._options.clock, term // MILLISECOND

        def take(db: sqlite3.Connection) -> bool:
            now = clock()
            row = run(db, "lead", name=name, holder=holder, now=now, until=now + term_ms).fetchone()
            return row is not None

        return await self._writer.do(take)

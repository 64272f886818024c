"""Slow work in small pages on Postgres, a short transaction each."""

from collections.abc import Callable
from pathlib import Path

from carteiro.errors import CannotBackUp
from carteiro.stores.postgres import ledger
from carteiro.stores.postgres.database import Database, sql
from carteiro.stores.postgres.options import PostgresOptions
from carteiro.stores.postgres.wake import PostgresWake
from carteiro.stores.sql.upkeep import SqlUpkeep

_UNHURRIED_S = 24 * 3600.0  # compacting takes as long as there is to write


class PostgresUpkeep(SqlUpkeep):
    """See `carteiro.ports.upkeep.Upkeep` for what it promises."""

    def __init__(self, db: Database, wake: PostgresWake, options: PostgresOptions) -> None:
        super().__init__(db)
        self._server = db
        self._wake = wake
        self._options = options

    async def expire(self, *, limit: int) -> int:
        """Expire at most ``limit`` messages that waited beyond their time; return how many."""
        now, ttl_ms = await self._server.now(), self._options.dead_letter_ttl_ms
        expired, has_work = await ledger.expire(self._server, limit, now, dead_letter_ttl_ms=ttl_ms)
        if has_work:
            await self._wake.tell()
        return expired

    async def backup(self, target: Path, progress: Callable[[float], None]) -> None:  # noqa: ARG002 - the port's
        """A server is copied by its own tools: they know its roles, its settings and its replicas."""
        text = (
            f"{self._server.name} is a database on a server: back it up with pg_dump --enable-row-security, "
            "with pg_dump as a superuser, or as the server is backed up"
        )
        raise CannotBackUp(text)

    async def compact(self) -> int:
        """Write the tables anew without the room that is free in them; others wait meanwhile."""
        before: int = await self._server.value("compact_size")
        async with self._server.outside_transactions() as session:
            await session.connection.execute(sql("compact"), timeout=_UNHURRIED_S)
        after: int = await self._server.value("compact_size")
        return max(0, before - after)

"""Slow work in small pages on Postgres, a short transaction each."""

from collections.abc import Callable
from pathlib import Path

from carteiro.errors import CannotBackUp
from carteiro.stores.postgres.database import Database, sql
from carteiro.stores.postgres.ledger import PostgresEntries
from carteiro.stores.postgres.wake import PostgresWake
from carteiro.stores.sql.upkeep import SqlUpkeep

_UNHURRIED_S = 24 * 3600.0  # the duration of compacting grows with the data


class PostgresUpkeep(SqlUpkeep):
    """See `carteiro.ports.upkeep.Upkeep` for what it promises."""

    def __init__(self, db: Database, entries: PostgresEntries, wake: PostgresWake) -> None:
        super().__init__(db, entries, wake)
        self._server = db

    async def backup(self, target: Path, progress: Callable[[float], None]) -> None:  # noqa: ARG002 - the port's
        """Refuse: a server is backed up by its own tools, which know its roles, settings and replicas."""
        text = (
            f"{self._server.name} is a database on a server: back it up with pg_dump --enable-row-security, "
            "with pg_dump as a superuser, or as the server is backed up"
        )
        raise CannotBackUp(text)

    async def compact(self) -> int:
        """Return all free space to the disk at once, and return the number of bytes; other writers wait."""
        before: int = await self._server.value("compact_size")
        async with self._server.outside_transactions() as session:
            await session.connection.execute(sql("compact"), timeout=_UNHURRIED_S)
        after: int = await self._server.value("compact_size")
        return max(0, before - after)

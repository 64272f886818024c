"""The ledger without a queue, for a pair with a separate queue."""

from collections.abc import Sequence

from carteiro import model
from carteiro.ports.ledger import Closed, Told
from carteiro.ports.queue import QueueEntry
from carteiro.stores.sql.paired_ledger import SqlLedger
from carteiro.stores.sqlite.database import SqliteDatabase
from carteiro.stores.sqlite.ledger import SqliteEntries
from carteiro.stores.sqlite.store import SqliteStore

_OVERLAP = 1000  # numbers of erased messages are used again: read them once more


class SqliteLedger(SqlLedger):
    """See `carteiro.ports.ledger.Ledger` for what it promises."""

    def __init__(self, db: SqliteDatabase, entries: SqliteEntries, store: SqliteStore) -> None:
        super().__init__(db, entries, store)
        self._entries: SqliteEntries = entries

    async def declare(
        self, starts: Sequence[model.Start], told: Sequence[Told]
    ) -> list[model.Begun | model.Refused | None]:
        """Make attempts durable before they are made."""
        return await self._entries.declare(starts, told)

    async def settle(self, ends: Sequence[model.End], told: Sequence[Told]) -> list[Closed | None]:
        """Store the verdicts: state, events and dead letter in one transaction."""
        return await self._entries.close(ends, told)

    async def recent(self, *, after: int | None, limit: int) -> tuple[list[QueueEntry], int]:
        """Unfinished messages accepted after a position, and the next position; None: the position only."""
        last = await self._db.value("accept_next_no") - 1
        if after is None:
            return [], last
        most = limit + _OVERLAP
        rows = await self._recent(min(after, last) - _OVERLAP, most)
        return [row[:6] for row in rows], rows[-1][6] if len(rows) == most else last

"""The ledger without a queue, for a pair with a separate queue."""

from carteiro.ports.queue import QueueEntry
from carteiro.stores.sql.paired_ledger import SqlLedger

_OVERLAP = 1000  # numbers of erased messages are used again: read them once more


class SqliteLedger(SqlLedger):
    """See `carteiro.ports.ledger.Ledger` for what it promises."""

    async def recent(self, *, after: int | None, limit: int) -> tuple[list[QueueEntry], int]:
        """Unfinished messages accepted after a position, and the next position; None: the position only."""
        last = await self._db.value("accept_next_no") - 1
        if after is None:
            return [], last
        most = limit + _OVERLAP
        rows = await self._recent(min(after, last) - _OVERLAP, most)
        return [row[:6] for row in rows], rows[-1][6] if len(rows) == most else last

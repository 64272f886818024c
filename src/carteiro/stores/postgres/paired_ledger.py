"""The ledger without a queue, for a pair with a separate queue."""

from collections import deque

from carteiro.ports.queue import QueueEntry
from carteiro.stores.postgres.database import Database
from carteiro.stores.postgres.ledger import PostgresEntries
from carteiro.stores.postgres.store import PostgresStore
from carteiro.stores.sql.paired_ledger import SqlLedger

_MOST_MARKS = 1000  # some minutes' worth


class PostgresLedger(SqlLedger):
    """See `carteiro.ports.ledger.Ledger` for what it promises."""

    def __init__(self, db: Database, entries: PostgresEntries, store: PostgresStore) -> None:
        super().__init__(db, entries, store)
        self._marks: deque[tuple[int, int]] = deque(maxlen=_MOST_MARKS)
        self._settled_up_to = 0

    async def _extend_holds(self, **given: object) -> None:
        await self._db.run("extend_holds", **given)  # alone: a transaction is two more round trips

    async def recent(self, *, after: int | None, limit: int) -> tuple[list[QueueEntry], int]:
        """Unfinished messages accepted after a position, and the next position; None: the position only.

        Numbers are assigned before their transactions commit. So the position moves past a number only when every
        transaction that may have taken a number up to it has ended.
        """
        last, oldest, newest = await self._db.first("unfinished_mark")
        while self._marks and self._marks[0][1] <= oldest:
            self._settled_up_to = max(self._settled_up_to, self._marks.popleft()[0])
        self._marks.append((last, newest))
        if after is None:
            return [], self._settled_up_to
        rows = await self._recent(after, limit)
        reached = rows[-1][6] if len(rows) == limit else self._settled_up_to
        return [row[:6] for row in rows], reached

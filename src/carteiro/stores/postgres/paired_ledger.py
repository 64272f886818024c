"""The ledger without a queue, for a pair with a separate queue."""

import asyncio
from collections import deque

from carteiro.ports.queue import QueueEntry
from carteiro.stores.postgres.database import Database
from carteiro.stores.postgres.ledger import PostgresEntries
from carteiro.stores.postgres.store import PostgresStore
from carteiro.stores.sql.paired_ledger import SqlLedger

_MOST_MARKS = 1000  # some minutes' worth
_MOST_LOOKS, _A_MOMENT_S = 50, 0.02  # an accept takes milliseconds


class PostgresLedger(SqlLedger):
    """See `carteiro.ports.ledger.Ledger` for what it promises."""

    def __init__(self, db: Database, entries: PostgresEntries, store: PostgresStore) -> None:
        super().__init__(db, entries, store)
        self._marks: deque[tuple[int, int]] = deque(maxlen=_MOST_MARKS)
        self._settled_up_to = self._last = 0

    async def _extend_holds(self, **given: object) -> None:
        await self._db.run("extend_holds", **given)  # alone: a transaction is two more round trips

    async def recent(self, *, after: int | None, limit: int) -> tuple[list[QueueEntry], int]:
        """Unfinished messages accepted after a position, and the next position; None: the position only.

        Numbers are assigned before their transactions commit. So the position moves past a number only when every
        transaction that may have taken a number up to it has ended. A new reader waits a little for that: it
        would have to read all messages of the ledger.
        """
        last = await self._mark()
        if after is None:
            for _ in range(_MOST_LOOKS):
                if self._settled_up_to >= last:
                    break
                await asyncio.sleep(_A_MOMENT_S)
                await self._mark()
            return [], self._settled_up_to
        rows = await self._recent(after, limit)
        reached = rows[-1][6] if len(rows) == limit else self._settled_up_to
        return [row[:6] for row in rows], reached

    async def _mark(self) -> int:
        """Look which numbers are settled; return the last one that is assigned."""
        last, oldest, newest = await self._db.first("unfinished_mark")
        while self._marks and self._marks[0][1] <= oldest:
            self._settled_up_to = max(self._settled_up_to, self._marks.popleft()[0])
        # Who has taken a number up to the last one of the look before is older than the next transaction now.
        self._marks.append((self._last, newest))
        self._last = last
        return int(last)

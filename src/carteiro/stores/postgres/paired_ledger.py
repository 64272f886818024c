"""The ledger without a queue, for a pair with a separate queue."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

from carteiro.ports.queue import QueueEntry, Ticket
from carteiro.stores.postgres.database import Database
from carteiro.stores.postgres.ledger import PostgresEntries
from carteiro.stores.postgres.literals import numbers, texts
from carteiro.stores.postgres.store import PostgresStore
from carteiro.stores.sql.paired_ledger import SqlLedger
from carteiro.stores.sql.session import Session

_MOST_MARKS = 1000  # some minutes' worth
_LOOKS_AFTER_S = (0.0, 0.001, 0.01, 0.1, 0.5)


class PostgresLedger(SqlLedger):
    """See `carteiro.ports.ledger.Ledger` for what it promises."""

    def __init__(self, db: Database, entries: PostgresEntries, store: PostgresStore) -> None:
        super().__init__(db, entries, store)
        self._marks: deque[tuple[int, frozenset[str]]] = deque(maxlen=_MOST_MARKS)
        self._settled_up_to = self._last = 0

    async def _rows(self, session: Session, tickets: Sequence[Ticket]) -> list[Any]:
        tenants = {tenant: place for place, tenant in enumerate({each[2] for each in tickets}, 1)}
        return await session.fetch(
            "open",
            ids=texts([each[0] for each in tickets]),
            places=numbers([tenants[each[2]] for each in tickets]),
            tenants=texts([*tenants]),
        )

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
            await self._wait_for(last)
            return [], self._settled_up_to
        rows = await self._recent(after, limit)
        reached = rows[-1][6] if len(rows) == limit else self._settled_up_to
        return [row[:6] for row in rows], reached

    async def _mark(self) -> int:
        """Look which numbers are settled; return the last one that is assigned."""
        last, takers = await self._db.first("unfinished_mark")
        while self._marks and self._marks[0][1].isdisjoint(takers):
            self._settled_up_to = max(self._settled_up_to, self._marks.popleft()[0])
        # Of the numbers of the look before, all that are not committed are of these: here both were read at once.
        self._marks.append((self._last, frozenset(takers)))
        self._last = last
        return int(last)

    async def _wait_for(self, last: int) -> None:
        """Wait until this number is settled, but not for an application that keeps its transaction open.

        A process that has just started knows no settled number: from 0 on it would read all messages, finished or not.
        """
        for pause_s in _LOOKS_AFTER_S:
            if self._settled_up_to >= last:
                return
            await asyncio.sleep(pause_s)
            await self._mark()

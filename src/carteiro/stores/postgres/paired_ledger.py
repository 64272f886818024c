"""The ledger without a queue, for a pair with a separate queue."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from carteiro import model
from carteiro.ports.queue import QueueEntry
from carteiro.stores.columns import entry_of
from carteiro.stores.postgres.changes import Held
from carteiro.stores.postgres.database import Database
from carteiro.stores.postgres.ledger import PostgresEntries
from carteiro.stores.postgres.store import PostgresStore
from carteiro.stores.sql.paired_ledger import ENTRY, SqlLedger

_MOST_MARKS = 1000  # some minutes' worth


class PostgresLedger(SqlLedger):
    """See `carteiro.ports.ledger.Ledger` for what it promises."""

    def __init__(self, db: Database, entries: PostgresEntries, store: PostgresStore) -> None:
        super().__init__(db, entries, store)
        self._memory = entries.memory
        self._marks: deque[tuple[int, int]] = deque(maxlen=_MOST_MARKS)
        self._settled_up_to = 0

    def _remember(self, jobs: Sequence[model.LeasedJob], rows: Mapping[str, Sequence[Any]]) -> None:
        for job in jobs:
            number, version = rows[job.lease.job][:2]
            if version:  # how long its timeline is, only the server knows
                continue
            entry = entry_of(rows[job.lease.job][ENTRY])
            held = Held(*(entry.id, number, version, entry.kind, entry.tenant, entry))
            self._memory.keep(
                job.lease, held._replace(is_remembered=True, expires_at=entry.expires_at)
            )

    async def _extend_holds(self, **given: object) -> None:
        await self._db.run("extend_holds", **given)  # alone: a transaction is two more round trips

    async def undeclared(self, leases: Sequence[model.Lease]) -> list[model.Lease]:
        """The leases without an attempt in flight."""
        undeclared = await super().undeclared(leases)
        self._memory.forget(undeclared)
        return undeclared

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

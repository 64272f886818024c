"""The path of a message on PostgreSQL: each method one operation."""

from collections.abc import Sequence
from datetime import timedelta

from carteiro import model
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND
from carteiro.stores.postgres.accept import accept
from carteiro.stores.postgres.claim import Claims
from carteiro.stores.postgres.database import Database
from carteiro.stores.postgres.ledger import PostgresEntries
from carteiro.stores.postgres.options import PostgresOptions
from carteiro.stores.postgres.wake import PostgresWake
from carteiro.stores.sql.store import SqlStore


class PostgresStore(SqlStore):
    """See `carteiro.ports.store.Store` for what it promises."""

    def __init__(
        self, db: Database, entries: PostgresEntries, wake: PostgresWake, options: PostgresOptions
    ) -> None:
        super().__init__(entries, wake)
        self._db = db
        self._wake: PostgresWake = wake
        self.declare, self._settle = entries.declare, entries.settle
        self.claim = Claims(db, options.fairness).claim
        self._has_queue = options.has_queue

    async def accept(self, new: Sequence[model.NewMessage]) -> list[model.AcceptAnswer]:
        """Commit the messages and their jobs; a known id or key is replayed."""
        if not new:
            await self._db.fetch("accept_nothing")
            return []
        try:
            return await accept(self._db, new, await self._db.now())
        finally:  # even if the call failed: it may be committed
            if self._has_queue:
                self._wake.ring({each.kind for each in new})

    async def settle(self, ends: Sequence[model.End]) -> list[model.Settled | model.Late]:
        """Store the verdicts: state, events, queue and dead letter of a message in one transaction."""
        answers, has_work = await self._settle(ends)
        if has_work:
            await self._wake.tell()
        return answers

    async def extend(self, leases: Sequence[model.Lease], *, lease: timedelta) -> list[bool]:
        """Extend live claims and their holds; False if the claim no longer has the job."""
        until = await self._db.now() + lease // MILLISECOND
        ids, claims = [each.job for each in leases], [each.claim for each in leases]
        standing = {
            (job, claim) for job, claim in await self._db.fetch("extend", ids, claims, until)
        }
        return [(each.job, each.claim) in standing for each in leases]

    async def release(self, leases: Sequence[model.Lease], *, wait: timedelta = model.ZERO) -> None:
        """Return claimed jobs without an attempt, as if they had never been claimed."""
        ids, claims = [each.job for each in leases], [each.claim for each in leases]
        now = await self._db.now()
        if await self._db.value("release", ids, claims, wait // MILLISECOND, now):
            await self._wake.tell()

    async def undo_claims(self, claims: Sequence[model.ClaimId]) -> None:
        """Release all jobs of these claims that have no attempt, as if they had never been claimed."""
        if await self._db.value("undo_claims", list(claims), await self._db.now()):
            await self._wake.tell()

    async def reap(self, *, limit: int) -> int:
        """Make jobs with an expired lease or hold ready, longest expired first; return the number."""
        now = await self._db.now()
        reaped = int(await self._db.value("reap", limit, LONGEST_HOLD_MS, now))
        if reaped:
            await self._wake.tell()
        return reaped

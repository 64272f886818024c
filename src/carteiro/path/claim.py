"""Lease a batch of jobs, fair between tenants.

In: the kinds of a pool and its free slots. Out: leased jobs, or the time to sleep. After a crash here the
leased jobs become ready when their leases expire, not charged and not in doubt.
"""

import asyncio
import time
from collections.abc import Collection
from datetime import timedelta

from uuid_utils import uuid7

from carteiro.model import ZERO, Claimed, ClaimId, KindName
from carteiro.ports.store import Store

# After a failure there is no other claim until it is undone: a few for each pool.
_MOST_FAILED = 100


class Claims:
    """The claims of one worker. Failed claims are undone: the store may have committed them and lost the answer.

    Each is undone before the next claim, and once more by `undo_again`: a store that was slow rather than
    unreachable may commit the claim after it was undone.
    """

    def __init__(
        self, store: Store, *, most_failing: timedelta = ZERO, grace: timedelta = ZERO
    ) -> None:
        self._store = store
        self._most_failing = most_failing
        self._grace = grace
        self._failing_since: float | None = None
        self._failed: list[ClaimId] = []
        self._undone: list[ClaimId] = []  # undone once

    async def claim(
        self, *, kinds: Collection[KindName], limit: int, lease: timedelta, ahead: int = 0
    ) -> Claimed:
        """Claim with a new id: a lease of a store that was wiped and filled again must not match."""
        claim_id = ClaimId(str(uuid7()))
        try:
            return await self._store.claim(
                claim_id=claim_id, kinds=kinds, limit=limit, lease=lease, ahead=ahead
            )
        except Exception:
            self._remember([claim_id])
            raise

    @property
    def has_failed(self) -> bool:
        """True if `recover` must come before the next claim."""
        return self._failing_since is not None

    async def recover(self) -> None:
        """Undo failed claims. Leases and holds that expired meanwhile are not taken at once.

        Their workers may be alive and were cut off for the same time: they have ``grace`` to extend or settle them.
        """
        await self.undo_failed()
        if self._failing_since is not None:
            failing_s = time.monotonic() - self._failing_since
            if failing_s > self._most_failing.total_seconds():
                await asyncio.sleep(self._grace.total_seconds())
            self._failing_since = None

    async def undo_failed(self) -> None:
        """Undo failed claims; if the store fails again, they are kept for the next time."""
        failed, self._failed = self._failed, []
        await self._undo(failed)
        self._undone = [*self._undone, *failed][-_MOST_FAILED:]

    async def undo_again(self) -> None:
        """Undo a second and last time."""
        undone, self._undone = self._undone, []
        await self._undo(undone)

    async def _undo(self, claims: list[ClaimId]) -> None:
        if not claims:
            return
        try:
            await self._store.undo_claims(claims)
        except BaseException:  # also if the worker stops during it
            self._remember(claims)
            raise

    def _remember(self, failed: list[ClaimId]) -> None:
        self._failed = [*self._failed, *failed][-_MOST_FAILED:]
        if self._failing_since is None:
            self._failing_since = time.monotonic()

"""A store for a worker that is to come back: it hands out what is due, so many jobs, and says when that is all."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta

from carteiro.errors import StoreUnavailable
from carteiro.model import (
    ZERO,
    AcceptAnswer,
    Begun,
    CancelAnswer,
    Claimed,
    ClaimId,
    End,
    KindName,
    Late,
    Lease,
    MessageId,
    NewMessage,
    Refused,
    Settled,
    Start,
    State,
    TenantId,
)
from carteiro.ports import Store

_A_MOMENT = timedelta(milliseconds=20)


class Errand:
    """The store behind it, but for claims: at most ``limit`` jobs, and an end when nothing is due.

    What is in hand may hold others back (a cap, a send rate), so the end is reached only when a claim finds
    nothing due that was asked for when nothing was in hand, and no other claim is under way. A store that says "again
    in a moment" is asked again: a slot that became free a millisecond ago may not show yet. ``states``
    counts what became of the jobs; ``failure`` is why nothing could be claimed, if that was the end.
    """

    def __init__(self, store: Store, *, limit: int | None) -> None:
        self._store = store
        self._left = limit
        self._in_hand: set[Lease] = set()
        self._asking = 0
        self._done: Callable[[], None] = lambda: None
        self.states: Counter[State] = Counter()
        self.failure: StoreUnavailable | None = None

    def when_done(self, done: Callable[[], None]) -> None:
        """Call this when nothing more will be handed out."""
        self._done = done

    async def claim(
        self, *, claim_id: ClaimId, kinds: Collection[KindName], limit: int, lease: timedelta
    ) -> Claimed:
        """As the store, within what is left."""
        if self._left is not None:
            limit = min(limit, self._left)
        if limit == 0:
            self._done()
            return Claimed([], None)
        is_idle = not self._in_hand
        self._asking += 1
        try:
            claimed = await self._store.claim(
                claim_id=claim_id, kinds=kinds, limit=limit, lease=lease
            )
        except (
            StoreUnavailable
        ) as error:  # who is to come back does not wait for a store to come back
            if is_idle:
                self.failure = error
                self._done()
            raise
        finally:
            self._asking -= 1
        self._in_hand.update(job.lease for job in claimed.jobs)
        if self._left is not None:
            self._left -= len(claimed.jobs)
        if claimed.jobs:
            return claimed
        is_soon = claimed.idle_for is not None and claimed.idle_for <= _A_MOMENT
        if is_idle and not is_soon and not self._in_hand and not self._asking:
            self._done()
        return Claimed([], _A_MOMENT)

    async def settle(self, ends: Sequence[End]) -> list[Settled | Late]:
        """As the store; counted."""
        answers = await self._store.settle(ends)
        self._in_hand.difference_update(end.lease for end in ends)
        self.states.update(each.state for each in answers if isinstance(each, Settled))
        return answers

    async def release(self, leases: Sequence[Lease], *, wait: timedelta = ZERO) -> None:
        """As the store."""
        await self._store.release(leases, wait=wait)
        self._in_hand.difference_update(leases)

    async def accept(self, new: Sequence[NewMessage]) -> list[AcceptAnswer]:
        """As the store."""
        return await self._store.accept(new)

    async def declare(self, starts: Sequence[Start]) -> list[Begun | Refused]:
        """As the store."""
        return await self._store.declare(starts)

    async def undo_claims(self, claims: Sequence[ClaimId]) -> None:
        """As the store."""
        await self._store.undo_claims(claims)

    async def extend(self, leases: Sequence[Lease], *, lease: timedelta) -> list[bool]:
        """As the store."""
        return await self._store.extend(leases, lease=lease)

    async def cancel(self, ids: Sequence[MessageId], *, tenant: TenantId) -> list[CancelAnswer]:
        """As the store."""
        return await self._store.cancel(ids, tenant=tenant)

    async def reap(self, *, limit: int) -> int:
        """As the store."""
        return await self._store.reap(limit=limit)

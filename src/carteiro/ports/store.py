"""The path of a message as a store sees it: accept, claim, declare, settle, and what keeps them honest."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Protocol

from carteiro import model


class Store(Protocol):
    """Ledger and queue behind one door. Lists in, lists of the same length out; atomic per item.

    Promises, one module each in ``tests/contract/store``:

    durable      An answer is given after the commit; a new process on the same place sees it.
    idempotent   `accept`, `declare` and `settle` repeated with the same ids answer alike and write nothing.
    exclusive    At any moment at most one live lease exists for a job.
    fenced       A worker whose claim was taken over changes no attempt of another; what it knows is kept.
    declared     Only a declared attempt may be in doubt; what was merely claimed comes back as if nothing happened.
    transitions  A message only moves along `model.TRANSITIONS`, and each move leaves its event.
    fair         Tenants take turns; the bound of docs/explanation/fairness.md holds in claim order.
    ordered      Inside a tenant: priority, then due time, then id.
    limited      Caps, rates, pauses and the send limit hold, cost others nothing, and end by themselves.
    timely       A parked job comes back when its time has come, also after a step of the clock.
    cautious     A job that keeps killing its workers is claimed alone, and is counted; a claim that is undone is not.
    cancellable  `cancel` ends what waits, marks what is in flight, and touches no other tenant's messages.
    once         A key commits with its message: asked again it is replayed, for another request it conflicts.
    counted      Limits hold over all processes together; what a store refuses or replays costs nothing.
    """

    async def accept(self, new: Sequence[model.NewMessage]) -> list[model.AcceptAnswer]:
        """Commit the messages and their jobs; a known id or key is replayed.

        To accept nothing fails whenever to accept something would, and leaves nothing behind.
        """
        ...

    async def claim(
        self,
        *,
        claim_id: model.ClaimId,
        kinds: Collection[model.KindName],
        limit: int,
        lease: timedelta,
    ) -> model.Claimed:
        """Lease at most ``limit`` ready jobs of these kinds, tenants taking turns."""
        ...

    async def declare(self, starts: Sequence[model.Start]) -> list[model.Begun | model.Refused]:
        """Make attempts durable before they are made; the hold replaces the lease."""
        ...

    async def settle(self, ends: Sequence[model.End]) -> list[model.Settled | model.Late]:
        """Store the verdicts: state, events, queue and dead letter in one transaction."""
        ...

    async def extend(self, leases: Sequence[model.Lease], *, lease: timedelta) -> list[bool]:
        """Push the end of live claims on, and of their holds; False where the claim is no longer the job's.

        Never shortens a hold.
        """
        ...

    async def release(self, leases: Sequence[model.Lease], *, wait: timedelta = model.ZERO) -> None:
        """Give back what was claimed and not declared, as if it had never been claimed."""
        ...

    async def undo_claims(self, claims: Sequence[model.ClaimId]) -> None:
        """Release all that these claims leased and did not declare, as if it had never been claimed.

        For claims whose answer was lost. Jobs that were given back or reassigned since are not changed, so a claim
        may be undone twice, or without having been committed.
        """
        ...

    async def cancel(
        self, ids: Sequence[model.MessageId], *, tenant: model.TenantId
    ) -> list[model.CancelAnswer]:
        """End what waits; mark what is in flight or in doubt, so that a retry becomes CANCELLED."""
        ...

    async def reap(self, *, limit: int) -> int:
        """Ready the jobs whose lease or hold ran out, those first that did so first; return how many.

        Safe anywhere, at any time.
        """
        ...

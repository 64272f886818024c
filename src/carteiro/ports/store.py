"""The path of a message in a store: accept, claim, declare, settle, and their repairs."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Protocol

from carteiro import model


class Store(Protocol):
    """Ledger and queue in one interface. A list in, a list of the same length out; atomic per item.

    Promises, one module each in ``tests/contract/store``:

    durable      An answer is given after the commit; a new process on the same store sees it.
    idempotent   `accept`, `declare` and `settle` repeated with the same ids give the same answer and write nothing.
    exclusive    At any moment at most one live lease exists for a job.
    fenced       A worker whose job was reassigned changes no other attempt; its result is recorded.
    declared     Only a declared attempt can be in doubt; a job that was only claimed returns unchanged.
    transitions  A message only moves along `model.TRANSITIONS`, and each move records an event.
    fair         Tenants take turns; the bound of docs/explanation/fairness.md holds in claim order.
    ordered      Within a tenant: by priority, then due time, then id.
    limited      Caps, rates, pauses and the send limit hold, do not slow other tenants, and end by themselves.
    timely       A parked job becomes ready at its time, also after a step of the clock.
    cautious     A job that repeatedly kills its workers is claimed alone; its claims count, undone claims do not.
    cancellable  `cancel` ends waiting messages, marks those in flight, and changes no other tenant's messages.
    once         A key commits with its message: the same request is replayed, another one conflicts.
    counted      Limits hold over all processes together; a refused or replayed message does not count.
    """

    async def accept(self, new: Sequence[model.NewMessage]) -> list[model.AcceptAnswer]:
        """Commit the messages and their jobs; a known id or key is replayed.

        An empty list fails whenever a message would, and writes nothing.
        """

    async def claim(
        self,
        *,
        claim_id: model.ClaimId,
        kinds: Collection[model.KindName],
        limit: int,
        lease: timedelta,
        ahead: int = 0,
    ) -> model.Claimed:
        """Lease at most ``limit`` ready jobs of these kinds, tenants taking turns.

        And at most ``ahead`` more, which start later: of tenants and kinds without a rate, cap or send limit.
        """

    async def declare(self, starts: Sequence[model.Start]) -> list[model.Begun | model.Refused]:
        """Make attempts durable before they are made; the hold replaces the lease."""

    async def settle(self, ends: Sequence[model.End]) -> list[model.Settled | model.Late]:
        """Store the verdicts: state, events, queue and dead letter in one transaction."""

    async def extend(self, leases: Sequence[model.Lease], *, lease: timedelta) -> list[bool]:
        """Extend live claims and their holds; False if the claim no longer has the job.

        Never shortens a hold.
        """

    async def release(self, leases: Sequence[model.Lease], *, wait: timedelta = model.ZERO) -> None:
        """Return claimed jobs without an attempt, as if they had never been claimed.

        After a `StoreError` it must be repeated: a job that was not returned counts as claimed.
        """

    async def undo_claims(self, claims: Sequence[model.ClaimId]) -> None:
        """Release all jobs of these claims that have no attempt, as if they had never been claimed.

        For claims whose answer was lost. Jobs that were returned or reassigned since are not changed, so a claim
        may be undone twice, or without having been committed.
        """

    async def cancel(
        self, ids: Sequence[model.MessageId], *, tenant: model.TenantId
    ) -> list[model.CancelAnswer]:
        """End waiting messages; mark those in flight or in doubt, so that a retry becomes CANCELLED."""

    async def reap(self, *, limit: int) -> int:
        """Make jobs with an expired lease or hold ready, longest expired first; return the number.

        Safe in any process, at any time.
        """

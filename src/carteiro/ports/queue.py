"""The order of jobs, when it is kept apart from the ledger: see `carteiro.stores.paired`."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Protocol, TypeAlias

from carteiro import model
from carteiro.ports.wake import Wake

# The job of an unfinished message according to the ledger: message, kind, tenant, priority, due time, and the time
# until which it is parked: its due time, or the end of the hold of a running attempt. In milliseconds since 1970.
QueueEntry: TypeAlias = tuple[model.MessageId, model.KindName, model.TenantId, int, int, int]
# A claimed job, with the queue's data on it: message, kind, tenant, claims, due time.
Ticket: TypeAlias = tuple[model.MessageId, model.KindName, model.TenantId, int, int]


@model.value
class Delay:
    """New due time of a claimed job, and the time until which it is parked."""

    lease: model.Lease
    due_at: int
    parked_until: int


@model.value
class Tickets:
    """The jobs of a claim, and the time until there may be more; None: until something changes."""

    jobs: list[Ticket]
    idle_for: timedelta | None


@model.value
class Share:
    """A tenant's share of the capacity."""

    tenant: model.TenantId
    stride: int
    cap: int | None
    rate_per_second: float | None
    is_held: bool


@model.value
class QueueMemory:
    """Used and maximum memory of a queue (0: no maximum); ``is_full``: no job can be put.

    ``rejected`` and ``out_of_memory``: connections, and commands for lack of memory, that its server has refused since
    its start, whose id is ``run``.
    """

    used_bytes: int
    max_bytes: int
    is_full: bool
    rejected: int = 0
    out_of_memory: int = 0
    run: str = ""


# A lease, and the milliseconds from now to its new end.
HeldLease: TypeAlias = tuple[model.Lease, int]


class Queue(Protocol):
    """The order of jobs. Knows no content, decides nothing about a message, and can be rebuilt when lost.

    For a pair it keeps the promises of `carteiro.ports.store.Store` about jobs (exclusive, fair, ordered,
    limited, timely, cautious); ``tests/contract/store`` tests the pair. In addition:

    - `put` of a known job changes nothing: it may be repeated at any time.
    - A queue that was wiped or replaced returns no jobs until it is `founded` again.
    - `StoreUnavailable` at once while it is down, and within its timeout when it goes down.
    """

    @property
    def outages(self) -> int:
        """The number of failed operations; after each, jobs may be missing."""

    async def put(self, entries: Sequence[QueueEntry]) -> int:
        """Make jobs claimable at their time; return the number of new ones. Fails if the queue is full."""

    async def claim(
        self,
        *,
        claim_id: model.ClaimId,
        kinds: Collection[model.KindName],
        limit: int,
        lease: timedelta,
        ahead: int = 0,
    ) -> Tickets | None:
        """As `carteiro.ports.store.Store.claim`; None if it must be founded."""

    def is_sure(self, claim: model.ClaimId) -> bool:
        """True if the leases of a claim cannot have expired yet; without asking."""

    async def settle(
        self,
        over: Sequence[model.MessageId],
        again: Sequence[Delay] = (),
        dead: Mapping[model.MessageId, int] | None = None,
    ) -> None:
        """Follow the ledger, in one step.

        ``over``: remove the jobs, leased or not, and their dead letters from the index. ``again``: park the jobs,
        without a claim and without counting one, except those that another claim has. ``dead``: show these in the
        index until their expiry.
        """

    async def hold(self, leases: Sequence[HeldLease]) -> list[int | None] | None:
        """Set the end of valid claims to a time from now, once for each claim.

        Returns for each the milliseconds that were left, None if another claim has the job; None if unknown.
        """

    async def unhold(self, leases: Sequence[HeldLease]) -> None:
        """Undo `hold`, as no attempt is made: the claims end a time from now, and can be held again."""

    async def extend(self, leases: Sequence[model.Lease], *, lease: timedelta) -> list[bool | None]:
        """Extend valid claims, never shorten one; None if unknown."""

    async def standing(self, leases: Sequence[model.Lease]) -> list[bool | None]:
        """True for each valid claim; None if unknown."""

    async def release(self, leases: Sequence[model.Lease], *, wait: timedelta) -> None:
        """Return jobs as if they had never been claimed; `StoreUnavailable` while the queue is down."""

    async def leases_of(self, claims: Sequence[model.ClaimId]) -> list[model.Lease]:
        """All leases of these claims; `StoreUnavailable` while the queue is down."""

    async def reap(self, *, limit: int) -> int:
        """Make jobs with an expired lease ready; return the number."""

    async def leased(self, ids: Sequence[model.MessageId]) -> list[bool | None]:
        """True for each job with a live lease; None if unknown."""


class QueueWatch(Protocol):
    """State of a queue, for monitoring."""

    async def look(self) -> QueueMemory:
        """Its memory use; `StoreUnavailable` whenever a claim would raise it, so also if it is read-only."""


class KeptQueue(QueueWatch, Protocol):
    """A queue that is kept complete from its ledger."""

    async def complete(self) -> None:
        """Put all jobs that are missing, before the first claim; `StoreUnavailable` if that fails."""


class QueueDesk(QueueWatch, Protocol):
    """Operations of a queue outside the path."""

    async def share(self, shares: Sequence[Share]) -> None:
        """Set shares of tenants; they apply to waiting jobs at once."""

    async def forget(self, tenant: model.TenantId) -> None:
        """Remove a tenant and all its jobs."""

    async def busy(self, tenant: model.TenantId) -> list[model.MessageId]:
        """The tenant's jobs with a live lease."""

    async def limit(self, kind: model.KindName, limit: model.SendLimit | None) -> None:
        """Set or remove the limit that all claims of a kind share."""

    async def tune(self, fairness: model.Fairness | None) -> None:
        """Set the fairness settings of all workers; None: as configured in each."""

    async def founded(self) -> str:
        """Allow claims, as all tenants and limits are set now; return a token that identifies the queue."""

    async def is_complete(self) -> bool:
        """True if every unfinished message was put since the queue was last lost or replaced."""

    async def completed(self, token: str) -> None:
        """Record that every unfinished message was put; ignored if the token is of another queue."""

    async def note(self, text: str = "") -> str:
        """Take the note of the last relay, '' without one; leave this one for the next relay.

        A queue that is not complete has none, and takes none.
        """

    async def standings(
        self, kind: model.KindName, fairness: model.Fairness
    ) -> list[model.Standing]:
        """The standing of each tenant with jobs or history of this kind, least served first."""

    async def place(self, message: model.MessageId) -> model.QueuePlace | None:
        """State of a message's job; None if it has none."""

    async def due(
        self, tenant: model.TenantId, kind: model.KindName, *, limit: int
    ) -> list[model.MessageId]:
        """The tenant's next claimable jobs, at most ``limit``, after at most as many claimed ones."""

    async def depths(self) -> list[model.Depth]:
        """Queue depth, by kind."""

    async def bury(self, expiries: Mapping[model.MessageId, int]) -> None:
        """Show these dead letters in the index until their expiry."""

    async def unbury(self, ids: Sequence[model.MessageId]) -> None:
        """Remove these from the index."""

    async def buried(self) -> list[model.MessageId]:
        """All messages in the index."""


@model.value
class QueueHalf:
    """All ports of one queue, opened and closed together."""

    queue: Queue
    desk: QueueDesk
    wake: Wake

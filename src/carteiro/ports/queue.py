"""Whose turn it is, where that is kept apart from the ledger: see `carteiro.stores.paired`."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from carteiro import model
from carteiro.ports.wake import Wake


@model.value
class QueueEntry:
    """The job of an unfinished message as the ledger says it must be; times are milliseconds since 1970."""

    id: model.MessageId
    kind: model.KindName
    tenant: model.TenantId
    priority: int
    due_at: int
    parked_until: int  # its due time, or the end of the hold of an attempt that is being made


@model.value
class Delay:
    """When a job is due that was claimed, and until when it is parked."""

    lease: model.Lease
    due_at: int
    parked_until: int


@model.value
class ClaimedEntry:
    """A job that was claimed: what the queue knows of it."""

    lease: model.Lease
    kind: model.KindName
    tenant: model.TenantId
    claims: int
    due_at: int


@model.value
class ClaimedEntries:
    """What a claim got, and how long there will be nothing to claim after it; None: until something happens."""

    jobs: list[ClaimedEntry]
    idle_for: timedelta | None


@model.value
class Share:
    """What a tenant may have of the machine."""

    tenant: model.TenantId
    stride: int
    cap: int | None
    rate_per_second: float | None
    is_held: bool


@model.value
class Hold:
    """Whether a claim is its job's, None where nobody can say; and how long it had left before it was held."""

    stands: bool | None
    left: timedelta = model.ZERO


@model.value
class QueueMemory:
    """How much memory a queue uses of how much (0: as much as there is); ``is_full``: no job can be put."""

    used_bytes: int
    max_bytes: int
    is_full: bool


class Queue(Protocol):
    """Whose turn it is. Knows no content, decides nothing about a message, and may be lost at any time.

    What `carteiro.ports.store.Store` promises of jobs (exclusive, fair, ordered, limited, timely, cautious) this
    keeps for the pair; ``tests/contract/store`` tries it there. Beyond that:

    - `put` of a known job changes nothing: it may be repeated at any time.
    - A queue that was wiped or is not the one it was hands out nothing until it is `founded` again.
    - `StoreUnavailable` at once while it is away, and within its patience when it goes.
    """

    @property
    def outages(self) -> int:
        """How often something could not be done; what was to be put then may be missing."""
        ...

    async def put(self, entries: Sequence[QueueEntry]) -> int:
        """Make jobs claimable from their time on; return how many were new. Fails where there is no room."""
        ...

    async def claim(
        self,
        *,
        claim_id: model.ClaimId,
        kinds: Collection[model.KindName],
        limit: int,
        lease: timedelta,
    ) -> ClaimedEntries | None:
        """Lease at most ``limit`` ready jobs of these kinds, tenants taking turns; None if it must be founded."""
        ...

    async def drop(self, ids: Sequence[model.MessageId]) -> None:
        """Jobs leave the queue, whoever has them; their dead letters leave the index."""
        ...

    async def delay(self, delays: Sequence[Delay]) -> None:
        """Park jobs, with no claim on them and none counted; what another claim has meanwhile is left to it."""
        ...

    async def hold(self, leases: Sequence[tuple[model.Lease, timedelta]]) -> list[Hold]:
        """Have claims end so long from now that are still their jobs', each once."""
        ...

    async def unhold(self, leases: Sequence[tuple[model.Lease, timedelta]]) -> None:
        """No attempt is made after all: they end so long from now, and can be held again."""
        ...

    async def extend(self, leases: Sequence[model.Lease], *, lease: timedelta) -> list[bool | None]:
        """Push the end of claims on that are still their jobs', never back; None where it cannot say whose they are."""
        ...

    async def standing(self, leases: Sequence[model.Lease]) -> list[bool | None]:
        """Whether claims are still their jobs'; None where it cannot say."""
        ...

    async def release(self, leases: Sequence[model.Lease], *, wait: timedelta) -> None:
        """Give jobs back as if they had never been claimed."""
        ...

    async def leases_of(self, claims: Sequence[model.ClaimId]) -> list[model.Lease]:
        """All leases of these claims; `StoreUnavailable` while the queue is down."""
        ...

    async def reap(self, *, limit: int) -> int:
        """Ready the jobs whose lease ran out; return how many."""
        ...

    async def leased(self, ids: Sequence[model.MessageId]) -> list[bool | None]:
        """Whether a live lease is on them; None where it cannot say."""
        ...


class QueueWatch(Protocol):
    """How a queue is, for those who watch over it."""

    async def look(self) -> QueueMemory:
        """How full it is; `StoreUnavailable` whenever a claim would be: also where it can be read and not written."""
        ...


class KeptQueue(QueueWatch, Protocol):
    """A queue that is kept complete beside its ledger."""

    async def complete(self) -> None:
        """Put whatever the ledger has and it has not, before anybody claims; `StoreUnavailable` if that cannot be."""
        ...


class QueueDesk(QueueWatch, Protocol):
    """What a queue is told beside the path, and what it can be asked."""

    async def share(self, shares: Sequence[Share]) -> None:
        """What tenants may have, acting on what waits at once."""
        ...

    async def forget(self, tenant: model.TenantId) -> None:
        """Take a tenant and all its jobs away."""
        ...

    async def busy(self, tenant: model.TenantId) -> list[model.MessageId]:
        """Its jobs that a live lease is on."""
        ...

    async def limit(self, kind: model.KindName, limit: model.SendLimit | None) -> None:
        """Set or lift the limit that all claims of a kind share."""
        ...

    async def tune(self, fairness: model.Fairness | None) -> None:
        """The fairness settings of all workers; None: as each was configured."""
        ...

    async def founded(self) -> str:
        """It knows every tenant and limit now: claims may begin. The token stands for what it is now."""
        ...

    async def is_complete(self) -> bool:
        """Whether every unfinished message was put since it was lost, or came back as another, last."""
        ...

    async def completed(self, token: str) -> None:
        """Every unfinished message was put since it was founded with this token; of another queue it says nothing."""
        ...

    async def standings(
        self, kind: model.KindName, fairness: model.Fairness
    ) -> list[model.Standing]:
        """How each tenant with work or history of this kind fares, least served first."""
        ...

    async def place(self, message: model.MessageId) -> model.QueuePlace | None:
        """Where the job of a message is; None when it has none."""
        ...

    async def due(
        self, tenant: model.TenantId, kind: model.KindName, *, limit: int
    ) -> list[model.MessageId]:
        """The tenant's next jobs that a claim could get now, at most ``limit``; behind as many that are claimed."""
        ...

    async def depths(self) -> list[model.Depth]:
        """How much there is, by kind."""
        ...

    async def bury(self, expiries: Mapping[model.MessageId, int]) -> None:
        """Show these dead letters in the index until then."""
        ...

    async def unbury(self, ids: Sequence[model.MessageId]) -> None:
        """Show these no longer."""
        ...

    async def buried(self) -> list[model.MessageId]:
        """All that the index shows."""
        ...


@model.value
class QueueHalf:
    """All that one queue offers, opened together and closed together."""

    queue: Queue
    desk: QueueDesk
    wake: Wake

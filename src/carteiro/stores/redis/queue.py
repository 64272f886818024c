"""The path of jobs through Redis: each method one script."""

from collections.abc import Collection, Sequence
from datetime import timedelta

from carteiro.model import ZERO, ClaimId, KindName, Lease, MessageId, TenantId
from carteiro.policy.fairness import READIED_PER_TURN, SUSPECT_CLAIMS
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.policy.pacing import MOST_DRAWS
from carteiro.ports.queue import ClaimedEntries, ClaimedEntry, Delay, Hold, QueueEntry
from carteiro.stores.redis.options import RedisOptions
from carteiro.stores.redis.pieces import pieces
from carteiro.stores.redis.server import Server

_STEP = (
    1 << 43
)  # a rank is the priority times this, plus the due time: exact as a score up to priority 1023
_CLAIM_PATIENCE = timedelta(seconds=5)  # without jobs a worker has nothing else to do
_PAGE = 500  # entries in one script: other clients must be served, too


class RedisQueue:
    """See `carteiro.ports.queue.Queue` for what it promises."""

    def __init__(self, server: Server, options: RedisOptions) -> None:
        self._server = server
        self._fairness = options.fairness
        self._put_patience = options.patience

    @property
    def outages(self) -> int:
        """The number of failed operations; after each, jobs may be missing."""
        return self._server.outages

    async def put(self, entries: Sequence[QueueEntry]) -> int:
        """Make jobs claimable at their time; return the number of new ones. Fails if the queue is full."""
        new = 0
        for page in pieces(entries, _PAGE):
            flat = [word for entry in page for word in _words(entry)]
            new += await self._server.run(
                "put", self._server.now, *flat, patience=self._put_patience
            )
        return new

    async def claim(
        self,
        *,
        claim_id: ClaimId,
        kinds: Collection[KindName],
        limit: int,
        lease: timedelta,
        ahead: int = 0,  # noqa: ARG002 - none are claimed ahead here, so far
    ) -> ClaimedEntries | None:
        """Lease at most ``limit`` ready jobs of these kinds, tenants taking turns; None if it must be founded."""
        wanted = sorted(set(kinds))
        if not wanted:
            return ClaimedEntries([], None)
        now, *told = await self._server.run(
            "claim",
            self._server.now,
            await self._server.know(),
            claim_id,
            lease // MILLISECOND,
            limit,
            int(self._fairness.enable_round_robin),
            self._fairness.max_jobs_per_tenant_batch,
            READIED_PER_TURN,
            SUSPECT_CLAIMS,
            MOST_DRAWS,
            *wanted,
            patience=_CLAIM_PATIENCE,
        )
        if now < 0:
            return None
        idle_ms, *flat = told
        jobs = [
            ClaimedEntry(
                Lease(MessageId(identity), claim_id), kind, TenantId(tenant), claims, due_at
            )
            for identity, kind, tenant, claims, due_at in pieces(flat, 5)
        ]
        return ClaimedEntries(jobs, None if idle_ms < 0 else idle_ms * MILLISECOND)

    async def drop(self, ids: Sequence[MessageId]) -> None:
        """Remove jobs from the queue, leased or not, and their dead letters from the index."""
        for page in pieces(ids, _PAGE):
            await self._server.run("drop", self._server.now, *page)

    async def delay(self, delays: Sequence[Delay]) -> None:
        """Park jobs, without a claim and without counting one; skip jobs that another claim has."""
        flat = [
            word
            for each in delays
            for word in (each.lease.job, each.lease.claim, each.due_at, each.parked_until)
        ]
        if flat:
            await self._server.run("delay", self._server.now, *flat)

    async def hold(self, leases: Sequence[tuple[Lease, timedelta]]) -> list[Hold]:
        """Set the end of valid claims to a time from now, once for each claim."""
        now, *ends = await self._extend("hold", leases)
        if now < 0:
            return [Hold(None)] * len(leases)
        return [Hold(end > 0, (end - now) * MILLISECOND) for end in ends]

    async def unhold(self, leases: Sequence[tuple[Lease, timedelta]]) -> None:
        """Undo `hold`, as no attempt is made: the claims end a time from now, and can be held again."""
        await self._extend("unhold", leases)

    async def extend(self, leases: Sequence[Lease], *, lease: timedelta) -> list[bool | None]:
        """Extend valid claims, never shorten one; None if unknown."""
        now, *ends = await self._extend("extend", [(each, lease) for each in leases])
        return [None] * len(leases) if now < 0 else [end > 0 for end in ends]

    async def standing(self, leases: Sequence[Lease]) -> list[bool | None]:
        """True for each valid claim; None if unknown."""
        now, *ends = await self._extend("ask", [(each, ZERO) for each in leases])
        return [None] * len(leases) if now < 0 else [end > 0 for end in ends]

    async def _extend(self, how: str, leases: Sequence[tuple[Lease, timedelta]]) -> list[int]:
        epoch = await self._server.know()
        flat = [
            word
            for lease, length in leases
            for word in (lease.job, lease.claim, length // MILLISECOND)
        ]
        told: list[int] = await self._server.run("extend", self._server.now, epoch, how, *flat)
        return told

    async def release(self, leases: Sequence[Lease], *, wait: timedelta) -> None:
        """Return jobs as if they had never been claimed."""
        flat = [word for lease in leases for word in (lease.job, lease.claim)]
        if flat:
            await self._server.run("release", self._server.now, wait // MILLISECOND, *flat)

    async def leases_of(self, claims: Sequence[ClaimId]) -> list[Lease]:
        """All leases of these claims; `StoreUnavailable` while the queue is down."""
        told = await self._server.run("leases_of", *claims)
        return [Lease(MessageId(job), ClaimId(claim)) for job, claim in pieces(told, 2)]

    async def reap(self, *, limit: int) -> int:
        """Make jobs with an expired lease ready; return the number."""
        return int(await self._server.run("reap", self._server.now, limit))

    async def leased(self, ids: Sequence[MessageId]) -> list[bool | None]:
        """True for each job with a live lease; None if unknown."""
        epoch = await self._server.know()
        return _said(await self._server.run("leased", self._server.now, epoch, *ids), len(ids))


def _words(entry: QueueEntry) -> tuple[str | int, ...]:
    rank = entry.priority * _STEP + entry.due_at
    return entry.id, entry.kind, entry.tenant, rank, entry.parked_until


def _said(told: Sequence[int], count: int) -> list[bool | None]:
    is_lost = bool(told) and told[0] < 0
    return [None] * count if is_lost else [each == 1 for each in told]

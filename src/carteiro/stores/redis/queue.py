"""The path of jobs through Redis: each method one script."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

from carteiro.model import ClaimId, KindName, Lease, MessageId
from carteiro.policy.fairness import READIED_PER_TURN, SUSPECT_CLAIMS
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.policy.pacing import MOST_DRAWS
from carteiro.ports.queue import Delay, HeldLease, QueueEntry, Tickets
from carteiro.stores.redis.options import RedisOptions
from carteiro.stores.redis.pieces import pieces
from carteiro.stores.redis.server import Server
from carteiro.stores.redis.sure import SureLeases
from carteiro.stores.redis.wake import RedisWake

# A rank is the priority times this, plus the due time: exact as a score up to priority 1023.
_STEP = 1 << 43
_CLAIM_PATIENCE = timedelta(seconds=5)  # without jobs a worker has nothing else to do
_PAGE = 500  # entries in one script: other clients must be served, too


class RedisQueue:
    """See `carteiro.ports.queue.Queue` for what it promises."""

    def __init__(self, server: Server, options: RedisOptions, wake: RedisWake) -> None:
        self._server = server
        self._wake = wake
        self._fairness = options.fairness
        self._put_patience = options.patience
        self._sure = SureLeases(options.clock)
        self.is_sure = self._sure.has

    @property
    def outages(self) -> int:
        """The number of failed operations; after each, jobs may be missing."""
        return self._server.outages

    async def put(self, entries: Sequence[QueueEntry]) -> int:
        """Make jobs claimable at their time; return the number of new ones. Fails if the queue is full.

        Workers of this process are woken at once: their claim is written behind the jobs, and waits for no answer.
        """
        new = 0
        for page in pieces(entries, _PAGE):
            ids, kinds, tenants, priorities, due, parked = zip(*page, strict=True)
            seats = dict.fromkeys(zip(kinds, tenants, strict=True))
            places = {seat: number for number, seat in enumerate(seats, 1)}
            numbers = [places[seat] for seat in zip(kinds, tenants, strict=True)]
            ranks = [priority * _STEP + at for priority, at in zip(priorities, due, strict=True)]
            lists = [ids, numbers, ranks, parked, *zip(*seats, strict=True)]
            self._wake.ring(set(kinds))
            new += await self._server.run(
                "put", self._server.now, lists, self._wake.name, patience=self._put_patience
            )
        return new

    async def claim(
        self,
        *,
        claim_id: ClaimId,
        kinds: Collection[KindName],
        limit: int,
        lease: timedelta,
        ahead: int = 0,
    ) -> Tickets | None:
        """Lease at most ``limit`` ready jobs of these kinds, tenants taking turns; None if it must be founded."""
        wanted = sorted(set(kinds))
        if not wanted:
            return Tickets([], None)
        asked_at = self._sure.now()
        now, *told = await self._server.run(
            "claim",
            self._server.now,
            await self._server.know(),
            claim_id,
            lease // MILLISECOND,
            limit,
            ahead,
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
        idle_ms, its_kinds, tenants, ids, seats, claims, dues = told
        jobs = [
            (id_, its_kinds[seat], tenants[seat], count, due_at)
            for id_, seat, count, due_at in zip(ids, seats, claims, dues, strict=True)
        ]
        self._sure.seen(now, at=asked_at)
        if jobs:
            self._sure.leased(claim_id, asked_at, lease // MILLISECOND)
        return Tickets(jobs, None if idle_ms < 0 else idle_ms * MILLISECOND)

    # --- changes of claimed jobs

    async def settle(
        self,
        over: Sequence[MessageId],
        again: Sequence[Delay] = (),
        dead: Mapping[MessageId, int] | None = None,
    ) -> None:
        """Follow the ledger, in one step: finished jobs leave, others are parked, dead letters shown."""
        delays = [(*each.lease, each.due_at, each.parked_until) for each in again]
        letters = [(expiry, each) for each, expiry in (dead or {}).items()]
        if len(over) + len(delays) <= _PAGE:
            await self._server.run("settle", self._server.now, [over, delays, letters])
            return
        for page in pieces(over, _PAGE):
            await self._server.run("settle", self._server.now, [page, [], []])
        await self._server.run("settle", self._server.now, [[], delays, letters])

    async def hold(self, leases: Sequence[HeldLease]) -> list[int | None] | None:
        """Set the end of valid claims to a time from now, once for each claim; see `Queue.hold`."""
        now, *ends = await self._extend("hold", leases)
        return None if now < 0 else [end - now if end > 0 else None for end in ends]

    async def unhold(self, leases: Sequence[HeldLease]) -> None:
        """Undo `hold`, as no attempt is made: the claims end a time from now, and can be held again."""
        await self._extend("unhold", leases)

    async def extend(self, leases: Sequence[Lease], *, lease: timedelta) -> list[bool | None]:
        """Extend valid claims, never shorten one; None if unknown."""
        lease_ms = lease // MILLISECOND
        now, *ends = await self._extend("extend", [(each, lease_ms) for each in leases])
        return [None] * len(leases) if now < 0 else [end > 0 for end in ends]

    async def standing(self, leases: Sequence[Lease]) -> list[bool | None]:
        """True for each valid claim; None if unknown."""
        now, *ends = await self._extend("ask", [(each, 0) for each in leases])
        return [None] * len(leases) if now < 0 else [end > 0 for end in ends]

    async def _extend(self, how: str, leases: Sequence[HeldLease]) -> list[int]:
        epoch = await self._server.know()
        rows = [(job, claim, ms) for (job, claim), ms in leases]
        told: list[int] = await self._server.run("extend", self._server.now, epoch, how, rows)
        return told

    async def release(self, leases: Sequence[Lease], *, wait: timedelta) -> None:
        """Return jobs as if they had never been claimed."""
        self._sure.forget({claim for _, claim in leases})
        rows = [(job, claim) for job, claim in leases]
        if rows:
            await self._server.run("release", self._server.now, wait // MILLISECOND, rows)

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
        told = await self._server.run("leased", self._server.now, epoch, list(ids))
        is_lost = bool(told) and told[0] < 0
        return [None] * len(ids) if is_lost else [each == 1 for each in told]

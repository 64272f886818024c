"""The path of a message on SQLite: each method one operation for the writer."""

import sqlite3
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from carteiro import model
from carteiro.errors import StoreFull
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND
from carteiro.policy.pacing import Pace, undrawn
from carteiro.stores.queue_columns import draws_of, draws_text
from carteiro.stores.sql.store import SqlStore
from carteiro.stores.sql.tenants import fairness_now
from carteiro.stores.sqlite import ledger
from carteiro.stores.sqlite.accept import accept
from carteiro.stores.sqlite.claim import Claim
from carteiro.stores.sqlite.database import SqliteSession, finished
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.rows import as_json, run
from carteiro.stores.sqlite.wake import SqliteWake
from carteiro.stores.sqlite.writer import Writer

_LOOK_AT_DISK_EVERY_S = 0.1


class SqliteStore(SqlStore):
    """See `carteiro.ports.store.Store` for what it promises."""

    def __init__(
        self,
        writer: Writer,
        entries: ledger.SqliteEntries,
        wake: SqliteWake,
        path: Path,
        options: SqliteOptions,
    ) -> None:
        super().__init__(entries, wake)
        self._writer = writer
        self._wake: SqliteWake = wake
        self._path = path
        self._options = options
        self._disk_seen_at = 0.0

    async def accept(self, new: Sequence[model.NewMessage]) -> list[model.AcceptAnswer]:
        """Commit the messages and their jobs; a known id or key is replayed."""
        self._refuse_without_room()
        clock, has_queue = self._options.clock, self._options.has_queue
        answers = await self._writer.do(lambda db: accept(db, new, clock(), has_queue=has_queue))
        if has_queue:
            self._wake.ring()
        return answers

    async def claim(
        self,
        *,
        claim_id: model.ClaimId,
        kinds: Collection[model.KindName],
        limit: int,
        lease: timedelta,
        ahead: int = 0,
    ) -> model.Claimed:
        """Lease at most ``limit`` ready jobs of these kinds, tenants taking turns."""
        wanted = sorted(set(kinds))
        if not wanted:
            return model.Claimed([], None)
        options = self._options

        def take(db: sqlite3.Connection) -> model.Claimed:
            claim = Claim(db, kinds=wanted, limit=limit, now=options.clock())
            fairness = finished(fairness_now(SqliteSession(db), options.fairness))
            claimed = claim.take(fairness=fairness, claim_id=claim_id, lease=lease)
            if not claimed.jobs:
                self._wake.found_nothing(db, wanted)
            return claimed

        return await self._writer.do(take, durable=False)

    async def extend(self, leases: Sequence[model.Lease], *, lease: timedelta) -> list[bool]:
        """Extend live claims and their holds; False if the claim no longer has the job."""
        clock, lease_ms = self._options.clock, lease // MILLISECOND
        pairs = as_json([(each.job, each.claim) for each in leases])

        def push_on(db: sqlite3.Connection) -> set[tuple[str, str]]:
            until = clock() + lease_ms
            standing = {(job, claim) for job, claim in run(db, "extend", leases=pairs, until=until)}
            if standing:
                run(db, "extend_holds", leases=as_json(sorted(standing)), until=until)
            return standing

        standing = await self._writer.do(push_on, durable=False)
        return [(each.job, each.claim) in standing for each in leases]

    async def release(self, leases: Sequence[model.Lease], *, wait: timedelta = model.ZERO) -> None:
        """Return claimed jobs without an attempt, as if they had never been claimed."""
        clock, wait_ms = self._options.clock, wait // MILLISECOND
        # If the machine stops before this is on the disk, the leases expire like any others.
        await self._writer.do(lambda db: _release(db, leases, clock(), wait_ms), durable=False)
        self._wake.ring()

    async def undo_claims(self, claims: Sequence[model.ClaimId]) -> None:
        """Release all jobs of these claims that have no attempt, as if they had never been claimed."""
        clock, ids = self._options.clock, as_json(claims)

        def undo(db: sqlite3.Connection) -> bool:
            leases = [model.Lease(job, claim) for job, claim in run(db, "claim_leases", claims=ids)]
            if leases:
                _release(db, leases, clock(), 0)
            return bool(leases)

        if await self._writer.do(undo, durable=False):
            self._wake.ring()

    async def reap(self, *, limit: int) -> int:
        """Make jobs with an expired lease or hold ready, longest expired first; return the number."""
        clock = self._options.clock
        reaped = await self._writer.do(lambda db: _reap(db, limit, clock()), durable=False)
        if reaped:
            self._wake.ring()
        return reaped

    def _refuse_without_room(self) -> None:
        """Refuse new messages when the disk is nearly full: accepted ones need space to settle."""
        now = time.monotonic()
        options = self._options
        if not options.min_free_bytes or now - self._disk_seen_at < _LOOK_AT_DISK_EVERY_S:
            return
        free = options.free_bytes(self._path)
        if free < options.min_free_bytes:
            text = (
                f"Only {free:,} bytes are free on the disk of {self._path.name}, and "
                f"{options.min_free_bytes:,} are kept for what is accepted already: free some space"
            )
            raise StoreFull(text)
        self._disk_seen_at = now


def _release(db: sqlite3.Connection, leases: Sequence[model.Lease], now: int, wait_ms: int) -> None:
    pairs = as_json([(each.job, each.claim) for each in leases])
    released = run(db, "release", leases=pairs, parked_until=now + wait_ms).fetchall()
    if wait_ms <= 0:
        ledger.make_ready(db, [identity for _, _, identity in released])
    seats = {(kind, tenant): [now + wait_ms, 0] for kind, tenant, _ in released}
    ledger.touch_seats(db, seats)
    ledger.free_slots(db, {tenant for _, tenant, _ in released}, now)
    _refund_kinds(db, released, {each.job: each.claim for each in leases})
    _refund_tenants(db, released)


def _refund_kinds(
    db: sqlite3.Connection,
    released: Sequence[tuple[str, str, model.MessageId]],
    claims: Mapping[model.MessageId, model.ClaimId],
) -> None:
    """Return unused draws to a send limit."""
    drawn = Counter((kind, claims[identity]) for kind, _, identity in released)
    limited = run(db, "refund_limits", kinds=as_json(sorted({kind for kind, _, _ in released})))
    draws = {kind: draws_of(text) for kind, text in limited}
    for (kind, claim), jobs in drawn.items():
        if kind in draws:
            draws[kind] = undrawn(draws[kind], claim, jobs)
    if draws:
        rows = [(kind, draws_text(left)) for kind, left in draws.items()]
        run(db, "refund_draws", rows=as_json(rows))


def _refund_tenants(db: sqlite3.Connection, released: Sequence[tuple[str, str, str]]) -> None:
    """Return unused tokens to the tenant."""
    tenants = Counter(tenant for _, tenant, _ in released)
    intervals = []
    for tenant, rate in run(db, "refund_rates", ids=as_json(list(tenants))):
        if rate is not None:
            interval_us = Pace.per_second(rate).interval_us
            intervals.append((tenant, tenants[tenant] * interval_us))
    run(db, "refund_tenants", rows=as_json(intervals))


def _reap(db: sqlite3.Connection, limit: int, now: int) -> int:
    lost = run(db, "reap_find", now=now, longest=LONGEST_HOLD_MS, limit=limit).fetchall()
    if not lost:
        return 0
    ledger.make_ready(db, [row[0] for row in lost])
    ledger.touch_seats(db, {(kind, tenant): [now, 0] for _, kind, tenant in lost})
    ledger.free_slots(db, {tenant for _, _, tenant in lost}, now)
    return len(lost)

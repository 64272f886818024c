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
from carteiro.stores.sqlite.rows import as_json, run, run_many
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
        self._entries: ledger.SqliteEntries = entries
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
            self._wake.ring({each.kind for each in new})
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
            claim = Claim(db, kinds=wanted, limit=limit, ahead=ahead, now=options.clock())
            fairness = finished(fairness_now(SqliteSession(db), options.fairness))
            claimed = claim.take(fairness=fairness, claim_id=claim_id, lease=lease)
            if claimed.idle_for != model.ZERO:  # then its worker waits
                self._wake.found_nothing(db, wanted)
            return claimed

        return await self._writer.do(take, durable=False)

    async def declare(self, starts: Sequence[model.Start]) -> list[model.Begun | model.Refused]:
        """Make attempts durable before they are made; the hold replaces the lease."""
        return await self._entries.declare(starts)

    async def settle(self, ends: Sequence[model.End]) -> list[model.Settled | model.Late]:
        """Store the verdicts: state, events, queue and dead letter in one transaction."""
        answers, has_work = await self._entries.settle(ends)
        if has_work:
            self._wake.ring()
        return answers

    async def extend(self, leases: Sequence[model.Lease], *, lease: timedelta) -> list[bool]:
        """Extend live claims and their holds; False if the claim no longer has the job."""
        clock, lease_ms = self._options.clock, lease // MILLISECOND
        pairs = [(each.job, each.claim) for each in leases]

        def push_on(db: sqlite3.Connection) -> set[int]:
            until = clock() + lease_ms
            found = run(db, "find_leases", leases=as_json(pairs)).fetchall()
            run_many(db, "extend", [(until, row[4], row[1]) for row in found])
            held = as_json([pairs[row[0]] for row in found if row[2]])
            run(db, "extend_holds", leases=held, until=until)
            return {row[0] for row in found}

        valid = await self._writer.do(push_on, durable=False)
        return [index in valid for index, _ in enumerate(leases)]

    async def release(self, leases: Sequence[model.Lease], *, wait: timedelta = model.ZERO) -> None:
        """Return claimed jobs without an attempt, as if they had never been claimed."""
        clock, wait_ms = self._options.clock, wait // MILLISECOND
        pairs = [(each.job, each.claim) for each in leases]
        # If the machine stops before this is on the disk, the leases expire like any others.
        await self._writer.do(lambda db: _release(db, pairs, clock(), wait_ms), durable=False)
        self._wake.ring()

    async def undo_claims(self, claims: Sequence[model.ClaimId]) -> None:
        """Release all jobs of these claims that have no attempt, as if they had never been claimed."""
        clock, ids = self._options.clock, as_json(claims)

        def undo(db: sqlite3.Connection) -> bool:
            leases = run(db, "leases_of_claims", claims=ids).fetchall()
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


def _release(
    db: sqlite3.Connection, leases: Sequence[tuple[str, str]], now: int, wait_ms: int
) -> None:
    found = run(db, "find_leases", leases=as_json(leases)).fetchall()
    released = [row for row in found if not row[2]]
    run_many(db, "drop_leased", [(row[4], row[1], leases[row[0]][1]) for row in released])
    rows = [(row[1], row[4], now + wait_ms, row[3], max(0, row[7] - 1)) for row in released]
    if wait_ms > 0:
        run_many(db, "put_delayed", rows)
    else:
        ready = [(row[4], row[8], row[9], row[3], row[1], max(0, row[7] - 1)) for row in released]
        run_many(db, "put_ready", ready)
    seats = {row[4] for row in released}
    run_many(db, "touch_seats", [(now + wait_ms, 0, seat) for seat in seats])
    ledger.free_slots(db, seats, now)
    _refund_kinds(db, Counter((row[5], leases[row[0]][1]) for row in released))
    _refund_tenants(db, Counter(row[6] for row in released))


def _refund_kinds(db: sqlite3.Connection, drawn: Mapping[tuple[str, str], int]) -> None:
    """Return unused draws to a send limit: the number of jobs, by kind and claim."""
    limited = run(db, "refund_limits", kinds=as_json(sorted({kind for kind, _ in drawn})))
    draws = {kind: draws_of(text) for kind, text in limited}
    for (kind, claim), jobs in drawn.items():
        if kind in draws:
            draws[kind] = undrawn(draws[kind], claim, jobs)
    if draws:
        rows = [(kind, draws_text(left)) for kind, left in draws.items()]
        run(db, "refund_draws", rows=as_json(rows))


def _refund_tenants(db: sqlite3.Connection, drawn: Mapping[str, int]) -> None:
    """Return unused tokens to the tenants: the number of jobs, by tenant."""
    intervals = [
        (tenant, drawn[tenant] * Pace.per_second(rate).interval_us)
        for tenant, rate in run(db, "refund_rates", ids=as_json(list(drawn)))
        if rate is not None
    ]
    if intervals:
        run(db, "refund_tenants", rows=as_json(intervals))


def _reap(db: sqlite3.Connection, limit: int, now: int) -> int:
    lost = run(db, "reap_find", now=now, longest=LONGEST_HOLD_MS, limit=limit).fetchall()
    if lost:
        run(db, "ready_jobs", rows=as_json(lost))
        seats = {seat for seat, _ in lost}
        run_many(db, "touch_seats", [(now, 0, seat) for seat in seats])
        ledger.free_slots(db, seats, now)
    return len(lost)

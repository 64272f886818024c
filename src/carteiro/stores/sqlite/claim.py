"""Claims: tenants take turns by virtual time, inside one transaction.

The walk works on copies of the seats and writes them back once; jobs are looked up for a page of seats at a time.
Nothing here counts or sorts the backlog: the cost depends only on the turns taken.
If killed before the commit, nothing was claimed; after it, the leases expire.
"""

import heapq
import sqlite3
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple, TypeAlias

from carteiro import model
from carteiro.policy.fairness import READIED_PER_TURN, SUSPECT_CLAIMS, SUSPECT_TURNS
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND
from carteiro.policy.pacing import Draw, Pace, Window, stepped_back
from carteiro.stores.columns import FAR, recipient_of
from carteiro.stores.heeding import asked_of, heeded, places_in
from carteiro.stores.queue_columns import draws_of, draws_text
from carteiro.stores.sqlite.ledger import make_ready
from carteiro.stores.sqlite.rows import as_json, run

_Order: TypeAlias = tuple[int, int, str, str]
_DELIVERIES = {each.value: each for each in model.Delivery}
_OPEN = model.State.SENT_ATTEMPT.value
_CLOCK_JITTER_MS = 1000  # a clock that is behind by more than this was set back


class _Head(NamedTuple):
    """A ready job in the walk; sorts as in the tenant's own queue."""

    priority: int
    due_at: int
    id: model.MessageId
    claims: int
    message_no: int


@dataclass(slots=True)
class _Tenant:
    """The limits of a tenant, across kinds."""

    id: model.TenantId
    stride: int
    cap: int | None
    pace: Pace | None
    next_us: int
    is_held: bool
    retry_preset: str | None
    in_flight: int | None = None
    first_over: int | None = None
    drew: bool = False


@dataclass(slots=True)
class _Kind:
    """The clock and the send limit of a kind."""

    name: model.KindName
    v: int = 0
    turn: int = 0
    seen_at: int = 0
    window: Window | None = None
    draws: list[Draw] = field(default_factory=list)
    left: int = 0  # of its window
    sends: int = 0  # jobs drawn from it in this call


@dataclass(slots=True)
class _Seat:
    """A tenant's seat in the ring of a kind, with the jobs looked up so far."""

    kind: _Kind
    tenant: _Tenant
    vt: int
    last_turn: int
    processed: int
    heads: deque[_Head] = field(default_factory=deque)
    has_all_heads: bool = False
    may_be_due: bool = False
    has_lost: bool = False  # expired leases among the due jobs
    was_readied: bool = False
    served: int = 0
    in_turn: int | None = None  # jobs of its last turn in this call
    alarm: int | None = None  # if set, it leaves the ring until then
    is_capped: bool = False  # it leaves because its tenant has no slot left
    is_idle: bool = False  # it leaves because it has no work

    @property
    def order(self) -> _Order:
        return (self.vt, self.last_turn, self.tenant.id, self.kind.name)

    @property
    def is_empty(self) -> bool:
        return not self.heads and self.has_all_heads and not self.may_be_due


class _Loader:
    """The pages of one kind's ring; ``reached`` is the last seat returned."""

    def __init__(self, pages: Iterator[list[_Seat]]) -> None:
        self._pages = pages
        self.reached: _Order = (-1, -1, "", "")
        self.is_done = False

    def load(self) -> list[_Seat]:
        page = next(self._pages, [])
        if page:
            self.reached = page[-1].order
        else:
            self.is_done = True
        return page


class Claim:
    """One claim call. `take` walks the ring and leases; `idle_for` is the time until the next call is useful."""

    def __init__(
        self, db: sqlite3.Connection, *, kinds: Sequence[model.KindName], limit: int, now: int
    ) -> None:
        self._db = db
        self._now = now
        self._limit = limit
        self._names = as_json(kinds)
        self._kinds = {name: _Kind(name) for name in kinds}
        self._tenants: dict[model.TenantId, _Tenant] = {}
        self._moved: dict[tuple[str, str], _Seat] = {}
        self._taken: list[tuple[_Seat, _Head]] = []
        self._taken_ids: set[model.MessageId] = set()
        self._is_over = False

    def take(
        self, *, fairness: model.Fairness, claim_id: model.ClaimId, lease: timedelta
    ) -> model.Claimed:
        """Lease due jobs, fair between tenants."""
        self._read_clocks()
        self._wake()
        if self._limit > 0:
            self._walk(fairness)
        self._store(claim_id, self._now + lease // MILLISECOND)
        return model.Claimed(self._load(claim_id), self._idle_for())

    # --- before the walk

    def _read_clocks(self) -> None:
        for row in run(self._db, "claim_clocks", kinds=self._names):
            name, v, turn, seen_at, count, per_ms, draws = row
            kind = self._kinds[name] = _Kind(name, v, turn, seen_at)
            if count is not None:
                kind.window, kind.draws = Window(count, per_ms), draws_of(draws)
                kind.left = kind.window.left(kind.draws, self._now)
        self._v = max(kind.v for kind in self._kinds.values())
        self._turn = max(kind.turn for kind in self._kinds.values())

    def _wake(self) -> None:
        seen_at = max(kind.seen_at for kind in self._kinds.values())
        if self._now < seen_at - _CLOCK_JITTER_MS:
            run(self._db, "claim_alarm_all", kinds=self._names, now=self._now)
            for kind in self._kinds.values():
                kind.draws = stepped_back(kind.draws, self._now)
            run(self._db, "claim_step_back", rows=self._draws(), now=self._now)
        run(self._db, "claim_wake", kinds=self._names, turn=self._turn, now=self._now, far=FAR)

    def _draws(self) -> str:
        return as_json([(kind.name, draws_text(kind.draws)) for kind in self._kinds.values()])

    # --- the walk

    def _walk(self, fairness: model.Fairness) -> None:
        batch = fairness.max_jobs_per_tenant_batch
        turns = self._fair_turns(batch) if fairness.enable_round_robin else self._plain_turns()
        for seat, most in turns:
            allowance = self._allowance(seat, most)
            if allowance <= 0:
                continue
            heads = self._heads_for_turn(seat, allowance)
            if heads and fairness.enable_round_robin:
                is_suspect = heads[0].claims >= SUSPECT_CLAIMS
                cost = SUSPECT_TURNS * batch if is_suspect else len(heads)
                self._count_turn(seat, len(heads), cost=cost)
            if heads:
                self._serve(seat, heads)
            if seat.is_empty or (not heads and not self._is_over):
                self._leave_idle(seat)
            if self._is_over or len(self._taken) >= self._limit:
                return

    def _fair_turns(self, batch: int) -> Iterator[tuple[_Seat, int]]:
        """Seats by least virtual time; a seat that stays in the ring returns with its new one."""
        ring: list[
            tuple[_Order, _Seat]
        ] = []  # no two seats are equal: the order ends with their names
        loaders = [_Loader(self._pages(kind, batch)) for kind in self._kinds.values()]
        while True:
            for loader in loaders:
                while not loader.is_done and (not ring or ring[0][0] > loader.reached):
                    for seat in loader.load():
                        heapq.heappush(ring, (seat.order, seat))
            if not ring:
                return
            _, seat = heapq.heappop(ring)
            if self._has_token(seat.kind):
                yield seat, batch
                if seat.alarm is None:
                    heapq.heappush(ring, (seat.order, seat))

    def _plain_turns(self) -> Iterator[tuple[_Seat, int]]:
        """First in, first out across tenants: one job at a time, always the oldest."""
        line: list[
            tuple[_Head, int, _Seat]
        ] = []  # the number only decides between equal heads; ids are never equal
        for kind in filter(self._has_token, self._kinds.values()):
            for seat in [seat for page in self._pages(kind, 1) for seat in page]:
                if self._look_ahead(seat, 1):
                    heapq.heappush(line, (seat.heads[0], 0, seat))
                else:
                    self._leave_idle(seat)
        while line:
            _, _, seat = heapq.heappop(line)
            if not self._has_token(seat.kind):
                continue
            yield seat, 1
            if seat.alarm is None and self._look_ahead(seat, 1):
                heapq.heappush(line, (seat.heads[0], 0, seat))

    def _pages(self, kind: _Kind, batch: int) -> Iterator[list[_Seat]]:
        """The ring of a kind, a page at a time, each seat with its first jobs."""
        size = max(8, -(-self._limit // batch))
        vt, last_turn, tenant = -1, -1, ""
        while True:
            rows = run(
                self._db,
                "claim_seats",
                kind=kind.name,
                vt=vt,
                last_turn=last_turn,
                tenant=tenant,
                limit=size,
            ).fetchall()
            if not rows:
                return
            seats = [self._seat(kind, row) for row in rows]
            self._look_up(seats, per_seat=batch * -(-self._limit // (batch * len(seats))) + 1)
            yield seats
            if len(rows) < size:
                return
            vt, last_turn, tenant = rows[-1][2], rows[-1][3], rows[-1][1]

    def _seat(self, kind: _Kind, row: Sequence[Any]) -> _Seat:
        _, name, vt, last_turn, processed, *share = row
        tenant = self._tenants.get(name)
        if tenant is None:
            stride, cap, rate, next_us, is_held, preset = share
            pace = Pace.per_second(rate) if rate is not None else None
            tenant = _Tenant(name, stride, cap, pace, next_us, bool(is_held), preset)
            self._tenants[tenant.id] = tenant
        return _Seat(kind, tenant, vt, last_turn, processed)

    def _look_up(self, seats: Sequence[_Seat], *, per_seat: int) -> None:
        """The first ready jobs of each seat; due jobs are made ready at the seat's turn."""
        names = as_json([(seat.kind.name, seat.tenant.id) for seat in seats])
        due = run(self._db, "claim_due_seats", seats=names, now=self._now, longest=LONGEST_HOLD_MS)
        for key, _, is_lost in due:
            seats[key].may_be_due = True
            seats[key].has_lost = bool(is_lost)
        for seat in seats:
            seat.heads.extend(self._heads(seat, per_seat))
            seat.has_all_heads = len(seat.heads) < per_seat

    def _heads(self, seat: _Seat, limit: int) -> list[_Head]:
        place = {"kind": seat.kind.name, "tenant": seat.tenant.id}
        return [_Head._make(row) for row in run(self._db, "claim_heads", limit=limit, **place)]

    def _look_ahead(self, seat: _Seat, wanted: int) -> bool:
        """Load ``wanted`` ready jobs if the seat has them; make its due ones ready first."""
        if seat.may_be_due and (not seat.was_readied or len(seat.heads) < wanted):
            self._ready(seat)
            self._refill(seat, wanted)
        elif len(seat.heads) < wanted and not seat.has_all_heads:
            self._refill(seat, wanted)
        seat.was_readied = True
        if seat.may_be_due and len(seat.heads) < wanted:
            self._ready(seat)
            self._refill(seat, wanted)
        return bool(seat.heads)

    def _ready(self, seat: _Seat) -> None:
        place: dict[str, object]
        place = {"kind": seat.kind.name, "tenant": seat.tenant.id, "now": self._now}
        if seat.has_lost:
            place["longest"] = LONGEST_HOLD_MS
        wanted = "claim_due_or_lost" if seat.has_lost else "claim_due"
        due = [row[0] for row in run(self._db, wanted, limit=READIED_PER_TURN, **place)]
        make_ready(self._db, due)
        seat.may_be_due = len(due) == READIED_PER_TURN
        seat.has_all_heads = False

    def _refill(self, seat: _Seat, wanted: int) -> None:
        """Look the seat's jobs up again; those taken in this call are still in the table."""
        limit = seat.served + max(wanted, READIED_PER_TURN) + 1
        found = self._heads(seat, limit)
        seat.heads = deque(head for head in found if head.id not in self._taken_ids)
        seat.has_all_heads = len(found) < limit

    def _allowance(self, seat: _Seat, most: int) -> int:
        """The number of jobs that the seat may take now; if none, it leaves the ring until it may."""
        tenant = seat.tenant
        if tenant.is_held:
            self._leave(seat, FAR)
            return 0
        allowance = min(most, self._limit - len(self._taken), self._tokens_of_kind(seat.kind))
        if tenant.cap is not None:
            allowance = min(allowance, tenant.cap - self._in_flight(tenant))
            if allowance <= 0:
                seat.is_capped = True
                self._leave(seat, FAR if tenant.first_over is None else tenant.first_over)
                return 0
        if tenant.pace is not None:
            allowance = min(allowance, tenant.pace.tokens(tenant.next_us, self._now * 1000))
            if allowance <= 0:
                self._leave(seat, -(-tenant.pace.wakes_at_us(tenant.next_us) // 1000))
        return allowance

    def _heads_for_turn(self, seat: _Seat, allowance: int) -> list[_Head]:
        """The jobs of one turn; a suspect, a job whose workers keep dying, is claimed alone."""
        self._look_ahead(seat, allowance)
        heads: list[_Head] = []
        while seat.heads and len(heads) < allowance:
            if seat.heads[0].claims >= SUSPECT_CLAIMS:
                self._is_over = True
                if not self._taken and not heads:
                    heads.append(seat.heads.popleft())
                break
            heads.append(seat.heads.popleft())
        seat.served += len(heads)
        self._taken_ids.update(head.id for head in heads)
        if not seat.heads and not seat.has_all_heads:
            self._refill(seat, 1)
        return heads

    def _count_turn(self, seat: _Seat, jobs: int, *, cost: int) -> None:
        self._v = max(self._v, seat.vt)
        self._turn += 1
        seat.in_turn = jobs
        seat.last_turn = self._turn
        seat.vt += cost * seat.tenant.stride

    def _serve(self, seat: _Seat, heads: Sequence[_Head]) -> None:
        jobs = len(heads)
        seat.processed += jobs
        self._moved[seat.kind.name, seat.tenant.id] = seat
        self._taken.extend((seat, head) for head in heads)
        tenant, kind = seat.tenant, seat.kind
        if tenant.in_flight is not None:
            tenant.in_flight += jobs
        if tenant.pace is not None:
            tenant.next_us = tenant.pace.drawn(tenant.next_us, self._now * 1000, jobs)
            tenant.drew = True
        if kind.window is not None:
            kind.left -= jobs
            kind.sends += jobs

    def _leave(self, seat: _Seat, alarm: int) -> None:
        seat.alarm = alarm
        self._moved[seat.kind.name, seat.tenant.id] = seat

    def _leave_idle(self, seat: _Seat) -> None:
        """Set its alarm to the end of its first park, known once the jobs of this call are leased."""
        seat.is_idle = True
        self._leave(seat, FAR)

    def _in_flight(self, tenant: _Tenant) -> int:
        if tenant.in_flight is None:
            tenant.in_flight, tenant.first_over = run(
                self._db,
                "claim_in_flight",
                tenant=tenant.id,
                now=self._now,
                longest=LONGEST_HOLD_MS,
            ).fetchone()
        return tenant.in_flight or 0

    def _tokens_of_kind(self, kind: _Kind) -> int:
        return self._limit if kind.window is None else kind.left

    def _has_token(self, kind: _Kind) -> bool:
        return self._tokens_of_kind(kind) > 0

    # --- after the walk

    def _store(self, claim_id: model.ClaimId, until: int) -> None:
        if self._taken:
            rows = as_json([_row(seat, head) for seat, head in self._taken])
            run(self._db, "claim_lease", rows=rows, claim=claim_id, until=until)
            run(self._db, "claim_take", ids=as_json([head.id for _, head in self._taken]))
            for kind in self._kinds.values():
                if kind.window is not None and kind.sends:
                    kind.draws = kind.window.drawn(kind.draws, self._now, kind.sends, claim_id)
            clocks = {"rows": self._draws(), "v": self._v, "turn": self._turn, "now": self._now}
            run(self._db, "claim_save_clocks", **clocks)
            drawn = [(t.id, t.next_us) for t in self._tenants.values() if t.drew]
            if drawn:
                run(self._db, "draw_tokens", rows=as_json(drawn))
        if self._moved:
            self._store_seats(until)

    def _store_seats(self, until: int) -> None:
        self._set_alarms(until)
        rows = [
            (
                seat.kind.name,
                seat.tenant.id,
                seat.vt,
                seat.last_turn,
                seat.alarm,
                seat.processed,
                seat.in_turn,
                seat.served > 0,
            )
            for seat in self._moved.values()
        ]
        run(self._db, "claim_save_seats", rows=as_json(rows), now=self._now)

    def _set_alarms(self, until: int) -> None:
        """The time to look again: an idle seat at the end of its first park, a capped one when a slot is free."""
        idle = [seat for seat in self._moved.values() if seat.is_idle]
        names = as_json([(seat.kind.name, seat.tenant.id) for seat in idle])
        for key, first_parked in run(
            self._db, "claim_alarms", seats=names, now=self._now, longest=LONGEST_HOLD_MS, far=FAR
        ):
            idle[key].alarm = first_parked
        served = {seat.tenant.id for seat, _ in self._taken}
        for seat in self._moved.values():
            if seat.is_capped and seat.tenant.id in served:
                seat.alarm = min(FAR if seat.alarm is None else seat.alarm, until)

    def _load(self, claim_id: model.ClaimId) -> list[model.LeasedJob]:
        if not self._taken:
            return []
        numbers = as_json([head.message_no for _, head in self._taken])
        rows = run(self._db, "claim_load", numbers=numbers).fetchall()
        told = {row[10] for row in rows if row[10] is not None}
        recipients = recipients_of(self._db, told)
        types = {(row[0], row[11]) for row in rows if row[11] is not None}
        presets = presets_of(self._db, types)
        jobs = [
            _leased(row, seat, head, claim_id, self._now, recipients, presets)
            for row, (seat, head) in zip(rows, self._taken, strict=True)
        ]
        return with_suppressed(self._db, jobs, {row[0] for row in rows if row[14]}, self._now)

    def _idle_for(self) -> timedelta | None:
        times = []
        for name, is_in_ring, alarm in run(self._db, "claim_idle", kinds=self._names):
            kind = self._kinds[name]
            if is_in_ring and self._has_token(kind):
                return timedelta(0)
            if is_in_ring and kind.window is not None:
                times.append(kind.window.wakes_at(kind.draws, self._now))
            if alarm is not None and alarm < FAR:
                times.append(alarm)
        return max(0, min(times) - self._now) * MILLISECOND if times else None


def recipients_of(db: sqlite3.Connection, ids: set[str]) -> Mapping[str, model.Recipient]:
    """The recipients with these ids, deleted or not."""
    rows = run(db, "claim_recipients", ids=as_json(sorted(ids))) if ids else ()
    return {recipient.id: recipient for recipient in map(recipient_of, rows)}


def presets_of(
    db: sqlite3.Connection, types: set[tuple[str, str]]
) -> Mapping[tuple[str, str], str | None]:
    """The retry presets of template types, each of its tenant, of those in use."""
    rows = run(db, "claim_presets", types=as_json(sorted(types))) if types else ()
    return {(tenant, type_): preset for tenant, type_, preset in rows}


def with_suppressed(
    db: sqlite3.Connection, jobs: list[model.LeasedJob], tenants: set[str], now: int
) -> list[model.LeasedJob]:
    """The jobs with their suppressed addresses; ``tenants`` are those that have suppressions."""
    asked = asked_of(jobs, tenants) if tenants else {}
    if not asked:
        return jobs
    rows = run(db, "suppressions_find", keys=as_json(places_in(jobs, asked)), now=now).fetchall()
    return heeded(jobs, asked, set(rows))


def _row(seat: _Seat, head: _Head) -> tuple[object, ...]:
    place = (seat.tenant.id, seat.kind.name, head.priority, head.due_at, head.id)
    return (*place, head.message_no, head.claims + 1)


def _leased(  # noqa: PLR0913, PLR0917 - the pieces of one job, put together once
    row: Sequence[Any],
    seat: _Seat,
    head: _Head,
    claim_id: model.ClaimId,
    now: int,
    recipients: Mapping[str, model.Recipient],
    presets: Mapping[tuple[str, str], str | None],
) -> model.LeasedJob:
    lease = model.Lease(head.id, claim_id)
    kind, tenant, claims = seat.kind.name, seat.tenant.id, head.claims + 1
    if row[0] is None:  # the queue knows it, the ledger does not
        nothing = (None, None, "", model.Delivery.AT_LEAST_ONCE, 0, 0, 0, 1, False, timedelta(0))
        return model.LeasedJob(lease, kind, tenant, claims, *nothing)
    (
        ledger_tenant,
        request_id,
        delivery,
        attempts,
        charged,
        in_doubt,
        revision,
        state,
        expires_at,
        cancel_requested_at,
        recipient_id,
        template_type,
        provider,
        content,
        _,
    ) = row
    return model.LeasedJob(
        lease,
        kind,
        tenant,
        claims,
        content,
        ledger_tenant,
        request_id,
        _DELIVERIES[delivery],
        attempts,
        charged,
        in_doubt,
        revision,
        state == _OPEN,
        (expires_at - now) * MILLISECOND,
        cancel_requested_at is not None,
        recipient_id,
        recipients.get(recipient_id),
        presets.get((ledger_tenant, template_type)) or seat.tenant.retry_preset,
        provider,
    )

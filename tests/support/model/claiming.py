"""The order of tenants: one claim call, walked through seat by seat."""

from collections import Counter
from collections.abc import Collection
from datetime import timedelta
from enum import Enum, auto

from carteiro.model import ZERO, ClaimId, KindName, TenantId
from carteiro.policy.fairness import READIED_PER_TURN, SUSPECT_CLAIMS, SUSPECT_TURNS
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.policy.pacing import stepped_back
from support.model.tables import FAR, Job, KindClock, Seat, Tables

_STEP_BACK_MS = 1000  # a smaller step is a disagreement between the clocks of several processes
_UNLIMITED = 1 << 62


class _Why(Enum):
    """The reason why a seat left the ring."""

    EMPTY = auto()
    PAUSE = auto()
    CAP = auto()
    RATE = auto()


class Claiming:
    """One claim call over the seats of some kinds.

    Its life: `wake` the seats whose time has come, `walk` the ring and take jobs, the caller leases
    the ``taken`` jobs, `close` sets the alarms of the seats that left and the clocks, `idle_for`.
    """

    def __init__(
        self, tables: Tables, kinds: Collection[KindName], *, limit: int, ahead: int, now: int
    ) -> None:
        self.taken: list[Job] = []
        self._tables = tables
        self._kinds = sorted(set(kinds))
        self._limit = limit
        self._ahead = ahead
        self._now = now
        clocks = [self._clock(kind) for kind in self._kinds]
        self._v = max((clock.v for clock in clocks), default=0)
        self._turn = max((clock.turn for clock in clocks), default=0)
        self._seen_at = max((clock.seen_at for clock in clocks), default=0)
        self._visited: set[Seat] = set()
        self._left: dict[Seat, _Why] = {}
        self._sends: Counter[KindName] = Counter()
        self._is_over = False

    # --- the life of a call -------------------------------------------------------------------

    def wake(self) -> None:
        """Let the seats whose alarm rang into the ring, with no credit for their absence."""
        has_stepped_back = self._now < self._seen_at - _STEP_BACK_MS
        if has_stepped_back:
            for kind in self._kinds:
                clock = self._clock(kind)
                self._tables.clocks[kind] = KindClock(clock.v, clock.turn, self._now)
                self._tables.draws[kind] = stepped_back(self._tables.draws_of(kind), self._now)
        for seat in self._seats():
            if seat.wakes_at is None or (seat.wakes_at > self._now and not has_stepped_back):
                continue
            if self._tables.tenants[seat.tenant].is_held:
                seat.wakes_at = FAR
            else:
                seat.wakes_at = None
                seat.vt = max(seat.vt, self._clock(seat.kind).v)
                seat.since_turn = self._turn

    def walk(self) -> None:
        """Take jobs, seat by seat, until there are enough or no seat has any that may be taken."""
        is_fair = self._tables.current_fairness().enable_round_robin
        while not self._is_over and len(self.taken) < self._limit + self._ahead:
            seat = self._least_served() if is_fair else self._first_in()
            if seat is None:
                return
            self._visit(seat, is_fair=is_fair)

    def close(self, claim_id: ClaimId) -> None:
        """Set the alarms of the seats that left, draws and clocks; the taken jobs are leased by now."""
        for kind, sends in self._sends.items():
            if window := self._tables.window_of(kind):
                draws = window.drawn(self._tables.draws_of(kind), self._now, sends, claim_id)
                self._tables.draws[kind] = draws
        self._sends.clear()
        for seat, why in self._left.items():
            seat.wakes_at = self._next_look(seat, why)
        if self.taken:
            for kind in self._kinds:
                v = max(self._clock(kind).v, self._v)
                self._tables.clocks[kind] = KindClock(v, self._turn, self._now)

    def idle_for(self) -> timedelta | None:
        """The time until there is something to claim, from now; None: until something happens."""
        first = min((self._alarm(seat) for seat in self._seats()), default=FAR)
        return None if first == FAR else max(ZERO, (first - self._now) * MILLISECOND)

    # --- choosing a seat ----------------------------------------------------------------------

    def _least_served(self) -> Seat | None:
        return min(self._ring(), key=lambda seat: seat.order, default=None)

    def _first_in(self) -> Seat | None:
        """The seat with the first job of all; seats that have none leave on the way."""
        for seat in self._ring():
            self._ready(seat, 1)
            self._leave_if_empty(seat)
        return min(self._ring(), key=lambda seat: self._waiting(seat)[0].order, default=None)

    def _ring(self) -> list[Seat]:
        seats = (seat for seat in self._seats() if seat.wakes_at is None)
        return [seat for seat in seats if self._may_take(seat) > 0]

    def _may_take(self, seat: Seat) -> int:
        """The jobs that the claim has room for; ahead of the limit only of tenants and kinds without one."""
        tenant, has_window = self._tables.tenants[seat.tenant], seat.kind in self._tables.limits
        is_limited = tenant.is_held or tenant.cap is not None or tenant.rate_per_second is not None
        room = self._limit - len(self.taken)
        if is_limited or has_window:
            return min(room, self._sends_left(seat.kind))
        return room + self._ahead

    # --- one visit ----------------------------------------------------------------------------

    def _visit(self, seat: Seat, *, is_fair: bool) -> None:
        if not self._may_have_more(seat):
            return
        allowance = self._allowance(seat, is_fair=is_fair)
        self._ready(seat, allowance)
        jobs = self._offered(seat, allowance)
        if jobs and is_fair:
            self._count_turn(seat, jobs)
        if jobs:
            self._take(seat, jobs)
        self._leave_if_empty(seat)

    def _may_have_more(self, seat: Seat) -> bool:
        """True if hold, cap and rate allow the tenant a job; if not, its seat leaves the ring."""
        if self._tables.tenants[seat.tenant].is_held:
            self._leave(seat, _Why.PAUSE)
        elif self._slots_left(seat.tenant) <= 0:
            self._leave(seat, _Why.CAP)
        elif self._tokens_left(seat.tenant) <= 0:
            self._leave(seat, _Why.RATE)
        return seat.wakes_at is None

    def _allowance(self, seat: Seat, *, is_fair: bool) -> int:
        batch = self._tables.current_fairness().max_jobs_per_tenant_batch if is_fair else 1
        return min(
            batch,
            self._may_take(seat),
            self._slots_left(seat.tenant),
            self._tokens_left(seat.tenant),
        )

    def _ready(self, seat: Seat, allowance: int) -> None:
        """Ready a page of due jobs: at the first visit, as urgent ones may be among them, or if too little is ready."""
        if seat in self._visited and len(self._waiting(seat)) >= allowance:
            return
        self._visited.add(seat)
        for job in seat.due(self._now)[:READIED_PER_TURN]:
            job.ready()

    def _offered(self, seat: Seat, allowance: int) -> list[Job]:
        """Its next jobs. A suspect is taken alone or not at all, and the call ends there."""
        offered: list[Job] = []
        for job in self._waiting(seat)[:allowance]:
            is_suspect = job.claims >= SUSPECT_CLAIMS
            is_first = not self.taken and not offered
            if not is_suspect or is_first:
                offered.append(job)
            if is_suspect:
                self._is_over = True
                break
        return offered

    def _count_turn(self, seat: Seat, jobs: list[Job]) -> None:
        """Jobs cost their tenant virtual time, a suspect as much as several turns: others wait for its claim."""
        batch = self._tables.current_fairness().max_jobs_per_tenant_batch
        is_suspect = jobs[0].claims >= SUSPECT_CLAIMS
        cost = SUSPECT_TURNS * batch if is_suspect else len(jobs)
        self._v = max(self._v, seat.vt)
        self._turn += 1
        seat.consecutive = len(jobs)
        seat.last_turn = self._turn
        seat.vt += cost * self._tables.stride_of(self._tables.tenants[seat.tenant])

    def _take(self, seat: Seat, jobs: list[Job]) -> None:
        self.taken.extend(jobs)
        seat.processed += len(jobs)
        seat.last_processed_at = self._now
        self._sends[seat.kind] += len(jobs)
        self._tables.draw(seat.tenant, len(jobs), self._now)

    def _leave_if_empty(self, seat: Seat) -> None:
        if not self._waiting(seat) and not seat.due(self._now):
            self._leave(seat, _Why.EMPTY)

    def _leave(self, seat: Seat, why: _Why) -> None:
        seat.wakes_at = FAR
        self._left[seat] = why

    # --- alarms -------------------------------------------------------------------------------

    def _next_look(self, seat: Seat, why: _Why) -> int:
        """The time of the seat's next possible turn: the end of its reason for leaving, or an earlier due job."""
        match why:
            case _Why.EMPTY:
                return min((job.wakes_at(self._now) for job in seat.jobs.values()), default=FAR)
            case _Why.PAUSE:
                return FAR
            case _Why.CAP:
                return self._next_slot_at(seat.tenant)
            case _Why.RATE:
                return self._next_token_at(seat.tenant)

    def _next_slot_at(self, tenant: TenantId) -> int:
        return min((job.wakes_at(self._now) for job in self._leased(tenant)), default=FAR)

    def _next_token_at(self, tenant: TenantId) -> int:
        pace = self._tables.pace_of(tenant)
        return _ms(pace.wakes_at_us(self._tables.next_token_us[tenant])) if pace else FAR

    def _alarm(self, seat: Seat) -> int:
        if self._tables.tenants[seat.tenant].is_held:
            return FAR  # not when a job becomes due: only when it may have jobs again is there something to claim
        if seat.wakes_at is not None:
            return seat.wakes_at
        return self._tables.limited_until(seat.kind, self._now) or self._now

    # --- jobs
    # ---------------------------------------------------------------------------------

    def _clock(self, kind: KindName) -> KindClock:
        return self._tables.clocks.get(kind, KindClock())

    def _seats(self) -> list[Seat]:
        return [seat for kind in self._kinds for seat in self._tables.seats.get(kind, {}).values()]

    def _waiting(self, seat: Seat) -> list[Job]:
        """Its ready jobs in their order, without those just taken."""
        ready = {job for job in seat.jobs.values() if job.parked_until is None}
        return sorted(ready.difference(self.taken), key=lambda job: job.order)

    def _leased(self, tenant: TenantId) -> list[Job]:
        jobs = (job for seat in self._tables.seats_of(tenant) for job in seat.jobs.values())
        return [job for job in jobs if job.is_leased(self._now)]

    def _slots_left(self, tenant: TenantId) -> int:
        cap = self._tables.tenants[tenant].cap
        if cap is None:
            return _UNLIMITED
        just_taken = sum(job.tenant == tenant for job in self.taken)
        return cap - len(self._leased(tenant)) - just_taken

    def _tokens_left(self, tenant: TenantId) -> int:
        pace = self._tables.pace_of(tenant)
        if pace is None:
            return _UNLIMITED
        return pace.tokens(self._tables.next_token_us[tenant], self._now * 1000)

    def _sends_left(self, kind: KindName) -> int:
        window = self._tables.window_of(kind)
        if window is None:
            return _UNLIMITED
        return window.left(self._tables.draws_of(kind), self._now) - self._sends[kind]


def _ms(at_us: int) -> int:
    return -(-at_us // 1000)  # rounded up: a millisecond early there is no token yet

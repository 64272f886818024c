"""The turns of one claim: a walk along the ring of tenants, by least virtual time or first in, first out.

Pure: a `Supply` looks up seats and jobs. The arithmetic of virtual time is in `carteiro.policy.fairness`.
Nothing here counts or sorts the backlog: the cost depends only on the turns taken.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush, heapreplace
from typing import Protocol, TypeAlias

from carteiro.model import KindName, MessageId, TenantId
from carteiro.policy.fairness import SUSPECT_CLAIMS, SUSPECT_TURNS
from carteiro.policy.pacing import Pace

FAR = 2**62  # an alarm that never rings, a limit that is never reached

Job: TypeAlias = tuple[
    int, int, MessageId, int, int
]  # priority, due time, id, claims, message number
_Order: TypeAlias = tuple[int, int, TenantId, KindName]


@dataclass(slots=True)
class Kind:
    """A kind, and the jobs that its send limit still allows."""

    name: KindName
    left: int = FAR
    sends: int = 0  # jobs of this claim


@dataclass(slots=True)
class Share:
    """The limits of a tenant, for all kinds together."""

    tenant: TenantId
    stride: int
    cap: int | None
    pace: Pace | None
    next_us: int
    is_held: bool
    retry_preset: str | None
    in_flight: int | None = None  # looked up if there is a cap
    frees_at: int = FAR
    has_drawn: bool = False


@dataclass(slots=True)
class Seat:
    """A tenant's seat in the ring of a kind, with the ready jobs looked up so far."""

    no: int
    kind: Kind
    share: Share
    vt: int
    last_turn: int
    processed: int
    is_limited: bool = False
    jobs: Sequence[Job] = ()
    at: int = 0  # of the next one in ``jobs``
    has_more: bool = True  # ready jobs after ``jobs``
    is_due: bool = False  # other jobs that can be made ready now
    was_visited: bool = False
    taken: list[Job] = field(default_factory=list)
    in_turn: int | None = None  # jobs of its last turn
    alarm: int | None = None  # set: it leaves the ring until then
    is_idle: bool = False  # it leaves because it has no work
    is_capped: bool = False  # it leaves because its tenant has no free slot


class Supply(Protocol):
    """Looks up what a walk needs."""

    def pages(self, kind: Kind) -> Iterator[list[Seat]]:
        """The ring of a kind, least virtual time first, a page at a time."""

    def ready(self, seat: Seat) -> None:
        """Make due jobs of the seat ready; the jobs looked up before are void."""

    def refill(self, seat: Seat, wanted: int) -> None:
        """Look up the next ready jobs, without those taken."""

    def in_flight(self, tenant: TenantId) -> tuple[int, int]:
        """The jobs that the tenant has in flight, and the first end of a lease."""


@dataclass(slots=True)
class Walk:
    """The jobs that one claim takes; ``v`` and ``turn`` are the clock of the ring.

    ``left`` is the number of jobs that it may still take, the last ``ahead`` of them only from seats without a
    limit: a limit counts when a job starts, and these start later.
    """

    supply: Supply
    left: int
    ahead: int
    now: int
    v: int
    turn: int
    taken: list[tuple[Seat, Sequence[Job]]] = field(default_factory=list)
    moved: dict[int, Seat] = field(default_factory=dict)  # by number
    is_over: bool = False  # a suspect: a job whose workers keep dying is claimed alone

    def fair(self, kinds: Sequence[Kind], batch: int) -> None:
        """Serve the seat with the least virtual time, at most ``batch`` jobs a turn."""
        rings = [_Ring(self.supply.pages(kind)) for kind in kinds]
        line: list[tuple[int, int, TenantId, KindName, Seat]] = []  # seats are never compared
        while self.left > 0 and not self.is_over:
            for ring in rings:
                while not ring.is_done and (not line or line[0] > ring.reached):
                    for seat in ring.load():
                        order = (seat.vt, seat.last_turn, seat.share.tenant, seat.kind.name, seat)
                        heappush(line, order)
            if not line:
                return
            seat = line[0][4]
            if self._may_serve(seat):
                self._visit(seat, batch, batch)
            if seat.alarm is None and self._may_serve(seat):
                order = (seat.vt, seat.last_turn, seat.share.tenant, seat.kind.name, seat)
                heapreplace(line, order)
            else:
                heappop(line)

    def plain(self, kinds: Sequence[Kind]) -> None:
        """First in, first out across tenants: one job at a time, always the first."""
        line: list[tuple[Job, int, Seat]] = []  # jobs are never equal: seats are never compared
        seats = [seat for kind in kinds for page in self.supply.pages(kind) for seat in page]
        for seat in seats:
            if seat.kind.left > 0:
                self._look_ahead(seat, 1)
                self._join(line, seat)
        while line and self.left > 0 and not self.is_over:
            _, _, seat = heappop(line)
            if self._may_serve(seat):
                self._visit(seat, 1, 0)
                if seat.alarm is None:
                    self._look_ahead(seat, 1)
                    self._join(line, seat)

    def _may_serve(self, seat: Seat) -> bool:
        """False: the claim passes it over, and it keeps its place in the ring."""
        return not seat.is_limited or (seat.kind.left > 0 and self.left > self.ahead)

    def _join(self, line: list[tuple[Job, int, Seat]], seat: Seat) -> None:
        if seat.at < len(seat.jobs):
            heappush(line, (seat.jobs[seat.at], seat.no, seat))
        else:
            self._leave(seat, is_idle=True)

    def _visit(self, seat: Seat, most: int, batch: int) -> None:
        """One turn; without a ``batch`` it costs no virtual time."""
        if seat.is_limited:
            most = self._allowance(seat, most)
        elif most > self.left:
            most = self.left
        if most <= 0:
            return
        if seat.is_due or seat.at + most > len(seat.jobs):
            self._look_ahead(seat, most)
        jobs = self._offered(seat.jobs[seat.at : seat.at + most])
        if jobs:
            self._serve(seat, jobs, batch)
        if seat.at >= len(seat.jobs):
            if seat.has_more:
                self.supply.refill(seat, 1)
            if not seat.is_due and seat.at >= len(seat.jobs):
                self._leave(seat, is_idle=True)

    def _look_ahead(self, seat: Seat, wanted: int) -> None:
        """Look up ``wanted`` jobs; make due ones ready at the first visit, as urgent ones may be among them."""
        if seat.is_due and not seat.was_visited:
            self.supply.ready(seat)
        seat.was_visited = True
        if seat.has_more and seat.at + wanted > len(seat.jobs):
            self.supply.refill(seat, wanted)
        if seat.is_due and seat.at + wanted > len(seat.jobs):
            self.supply.ready(seat)
            self.supply.refill(seat, wanted)

    def _offered(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """The jobs up to a suspect; a suspect is offered only if it comes first of all. It ends the claim."""
        for index, job in enumerate(jobs):
            if job[3] >= SUSPECT_CLAIMS:
                self.is_over = True
                is_first = index == 0 and not self.taken
                return jobs[:1] if is_first else jobs[:index]
        return jobs

    def _serve(self, seat: Seat, jobs: Sequence[Job], batch: int) -> None:
        count = len(jobs)
        if batch:
            is_suspect = jobs[0][3] >= SUSPECT_CLAIMS
            self.v = max(self.v, seat.vt)
            self.turn += 1
            seat.in_turn = count
            seat.last_turn = self.turn
            seat.vt += seat.share.stride * (SUSPECT_TURNS * batch if is_suspect else count)
        seat.at += count
        seat.taken += jobs
        self.left -= count
        self.taken.append((seat, jobs))
        self.moved[seat.no] = seat
        if seat.is_limited:
            share, kind = seat.share, seat.kind
            kind.left -= count
            kind.sends += count
            if share.in_flight is not None:
                share.in_flight += count
            if share.pace is not None:
                share.next_us = share.pace.drawn(share.next_us, self.now * 1000, count)
                share.has_drawn = True

    def _allowance(self, seat: Seat, most: int) -> int:
        """The number of jobs that the seat may take now; if none, it leaves the ring until it may."""
        share = seat.share
        if share.is_held:
            return self._leave(seat)
        allowance = min(most, self.left - self.ahead, seat.kind.left)
        if share.cap is not None:
            if share.in_flight is None:
                share.in_flight, share.frees_at = self.supply.in_flight(share.tenant)
            allowance = min(allowance, share.cap - share.in_flight)
            if allowance <= 0:
                seat.is_capped = True
                return self._leave(seat, share.frees_at)
        if share.pace is not None:
            allowance = min(allowance, share.pace.tokens(share.next_us, self.now * 1000))
            if allowance <= 0:
                return self._leave(seat, -(-share.pace.wakes_at_us(share.next_us) // 1000))
        return allowance

    def _leave(self, seat: Seat, alarm: int = FAR, *, is_idle: bool = False) -> int:
        """The seat leaves the ring; an idle one until its first job may be ready, which the store knows."""
        seat.alarm = alarm
        seat.is_idle = is_idle
        self.moved[seat.no] = seat
        return 0


class _Ring:
    """The pages of one kind's ring; ``reached`` is the last seat returned."""

    def __init__(self, pages: Iterator[list[Seat]]) -> None:
        self._pages = pages
        self.reached: _Order = (-1, -1, TenantId(""), KindName(""))
        self.is_done = False

    def load(self) -> list[Seat]:
        page = next(self._pages, [])
        if page:
            last = page[-1]
            self.reached = (last.vt, last.last_turn, last.share.tenant, last.kind.name)
        else:
            self.is_done = True
        return page

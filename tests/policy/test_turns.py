"""The walk of a claim, over a ring in memory."""

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from carteiro.model import KindName, MessageId, TenantId
from carteiro.policy.fairness import SUSPECT_CLAIMS, SUSPECT_TURNS
from carteiro.policy.pacing import Pace
from carteiro.policy.turns import FAR, Job, Kind, Seat, Share, Walk

NOW = 1_000_000
STRIDE = 10
TASK = KindName("task:tidy")


class Ring:
    """Seats with ready jobs, looked up a few at a time; ``due`` are jobs that can be made ready."""

    def __init__(self, *seats: Seat, ready: Sequence[int], page: int = 2) -> None:
        self.seats = {seat.no: seat for seat in seats}
        self.stored = {
            seat.no: jobs(count, seat.no) for seat, count in zip(seats, ready, strict=True)
        }
        self.due: dict[int, list[Job]] = {}
        self.flying: dict[TenantId, tuple[int, int]] = {}
        self.page = page

    def pages(self, kind: Kind) -> Iterator[list[Seat]]:
        seats = [seat for seat in self.seats.values() if seat.kind is kind]
        for start in range(0, len(seats), self.page):
            for seat in seats[start : start + self.page]:
                seat.is_due = bool(self.due.get(seat.no))
            yield seats[start : start + self.page]

    def ready(self, seat: Seat) -> None:
        due = self.due[seat.no]
        self.stored[seat.no] += due[:2]
        del due[:2]
        seat.is_due = bool(due)
        seat.jobs, seat.at, seat.has_more = (), 0, True

    def refill(self, seat: Seat, wanted: int) -> None:
        left = sorted(job for job in self.stored[seat.no] if job not in seat.taken)
        seat.jobs, seat.at, seat.has_more = left[: wanted + 1], 0, len(left) > wanted + 1

    def in_flight(self, tenant: TenantId) -> tuple[int, int]:
        return self.flying.get(tenant, (0, FAR))


def jobs(count: int, seat: int = 1, *, priority: int = 5, claims: int = 0) -> list[Job]:
    """Ready jobs of a seat, oldest first."""
    made = range(1, count + 1)
    return [(priority, n, MessageId(f"{seat}-{n}"), claims, 100 * seat + n) for n in made]


def a_seat(no: int, kind: Kind, *, stride: int = STRIDE, **limits: object) -> Seat:
    """A seat at the start of the ring; ``limits`` are fields of `Share`."""
    share = Share(TenantId(f"tenant-{no}"), stride, None, None, 0, is_held=False, retry_preset=None)
    for name, value in limits.items():
        setattr(share, name, value)
    return Seat(no, kind, share, 0, 0, 0, is_limited=bool(limits) or kind.left < FAR)


def walked(ring: Ring, limit: int, *, batch: int = 3, ahead: int = 0) -> Walk:
    """The walk of one claim; without a batch, first in, first out."""
    walk = Walk(ring, limit + ahead, ahead, NOW, v=0, turn=0)
    kinds = list({id(seat.kind): seat.kind for seat in ring.seats.values()}.values())
    if batch:
        walk.fair(kinds, batch)
    else:
        walk.plain(kinds)
    return walk


def served(walk: Walk) -> Counter[int]:
    """The number of jobs that each seat got."""
    return Counter({no: len(seat.taken) for no, seat in walk.moved.items() if seat.taken})


def test_tenants_take_turns() -> None:
    """A batch each, in the order of the ring."""
    kind = Kind(TASK)
    ring = Ring(a_seat(1, kind), a_seat(2, kind), a_seat(3, kind), ready=(9, 9, 9))

    walk = walked(ring, 14)

    assert [(seat.no, len(taken)) for seat, taken in walk.taken] == [
        *((1, 3), (2, 3), (3, 3)),
        *((1, 3), (2, 2)),
    ]
    assert (walk.turn, walk.v) == (5, 3 * STRIDE)


def test_weights_are_exact() -> None:
    """A tenant with half the stride gets twice as many jobs."""
    kind = Kind(TASK)
    ring = Ring(a_seat(1, kind, stride=5), a_seat(2, kind), ready=(90, 90))

    assert served(walked(ring, 60, batch=1)) == {1: 40, 2: 20}


def test_seat_without_work_leaves() -> None:
    """The others get the rest."""
    kind = Kind(TASK)
    ring = Ring(a_seat(1, kind), a_seat(2, kind), ready=(2, 9))

    walk = walked(ring, 8)

    assert served(walk) == {1: 2, 2: 6}
    assert ring.seats[1].is_idle
    assert ring.seats[2].alarm is None


def test_due_jobs_are_made_ready_at_the_first_visit() -> None:
    """An urgent one among them goes first."""
    ring = Ring(a_seat(1, Kind(TASK)), ready=(3,))
    ring.due[1] = [(1, 1, MessageId("urgent"), 0, 999)]

    walk = walked(ring, 2)

    assert [job[2] for _, taken in walk.taken for job in taken] == ["urgent", "1-1"]


def test_more_due_jobs_are_made_ready_where_too_few_are() -> None:
    """Until the turn is full."""
    ring = Ring(a_seat(1, Kind(TASK)), ready=(0,))
    ring.due[1] = jobs(7)

    walk = walked(ring, 6)

    assert served(walk) == {1: 6}
    assert [len(taken) for _, taken in walk.taken] == [3, 3]


def test_suspect_is_claimed_alone() -> None:
    """It ends the claim before it; alone it costs its tenant several turns."""
    kind = Kind(TASK)
    first, second = a_seat(1, kind), a_seat(2, kind)
    ring = Ring(first, second, ready=(1, 0))
    ring.stored[2] = jobs(3, 2, claims=SUSPECT_CLAIMS)

    assert served(walked(ring, 10)) == {1: 1}

    again = Ring(a_seat(2, kind), ready=(0,))
    again.stored[2] = jobs(3, 2, claims=SUSPECT_CLAIMS)
    walk = walked(again, 10)
    assert served(walk) == {2: 1}
    assert again.seats[2].vt == 3 * SUSPECT_TURNS * STRIDE


def test_limits_hold() -> None:
    """A held tenant, a full one and one without tokens leave the ring until they may go on."""
    kind, pace = Kind(TASK), Pace.per_second(1)
    held, capped = a_seat(1, kind, is_held=True), a_seat(2, kind, cap=2)
    paced, free = a_seat(3, kind, pace=pace, next_us=NOW * 1000), a_seat(4, kind)
    ring = Ring(held, capped, paced, free, ready=(9, 9, 9, 9), page=4)
    ring.flying[capped.share.tenant] = (1, NOW + 7)

    walk = walked(ring, 20)

    assert served(walk) == {2: 1, 3: 1, 4: 9}
    assert (held.alarm, capped.alarm, paced.alarm) == (FAR, NOW + 7, NOW + 1000)
    assert capped.is_capped


@pytest.mark.parametrize("batch", [0, 3])
@pytest.mark.parametrize("left", [2, 0])
def test_send_limit_of_a_kind_ends_its_turns(left: int, batch: int) -> None:
    """Its seats keep their place; another kind goes on."""
    limited, other = Kind(TASK, left=left), Kind(KindName("task:other"))
    ring = Ring(a_seat(1, limited), a_seat(2, other), ready=(9, 9))

    walk = walked(ring, 10, batch=batch)

    assert served(walk) == +Counter({1: left, 2: 10 - left if left else 9})
    assert ring.seats[1].alarm is None
    assert (limited.left, limited.sends) == (0, left)


@pytest.mark.parametrize("batch", [0, 3])
def test_only_seats_without_limits_are_served_ahead(batch: int) -> None:
    """The others are passed over, keep their place, and get no more than they would without."""
    kind = Kind(TASK)
    capped, free = a_seat(1, kind, cap=100), a_seat(2, kind)
    ring = Ring(capped, free, ready=(9, 20))

    walk = walked(ring, 6, batch=batch, ahead=5)

    assert sum(served(walk).values()) == 11
    assert served(walk)[1] <= 6
    assert capped.alarm is None


def test_without_turns_the_first_job_goes_first() -> None:
    """Of any tenant: by priority, then by due time."""
    kind = Kind(TASK)
    ring = Ring(a_seat(1, kind), a_seat(2, kind), a_seat(3, kind), ready=(2, 0, 0))
    ring.stored[2] = jobs(2, 2, priority=1)

    walk = walked(ring, 3, batch=0)

    assert [job[2] for _, taken in walk.taken for job in taken] == ["2-1", "2-2", "1-1"]
    assert ring.seats[3].is_idle
    assert walk.turn == 0

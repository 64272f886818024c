"""The estimate of when a message is sent: its basis, its limits, and how it fares in a simulation of turns."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carteiro.model import EMAIL, MessageId, QueuePlace, State, StoredMessage, Tenant, TenantId
from carteiro.policy import fairness
from carteiro.policy.estimate import (
    MOST_AHEAD,
    MOST_MINUTES,
    STEADY,
    attempts,
    estimate,
    minutes_back,
)
from carteiro.policy.pacing import Pace
from carteiro.policy.turns import FAR, Job, Kind, Seat, Share, Walk
from carteiro.policy.waiting import Estimate, Waiting, Why, explain
from support.builders import ACME, a_stored_message

NOW = datetime(2027, 1, 15, 8, 0, 30, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
READY = QueuePlace(None, is_claimed=False, claims=0, tenant_wakes_at=None, tenant_in_flight=0)
TURN = Waiting(Why.TURN, None, "")


def a_message(due: timedelta = -10 * MINUTE, **changes: Any) -> StoredMessage:
    """A message that waits since, or until, a time from now."""
    return a_stored_message(due_at=NOW + due, expires_at=NOW + timedelta(days=1), **changes)


def estimated(
    message: StoredMessage,
    place: QueuePlace,
    ended: int,
    *,
    tenant: Tenant | None = None,
    **known: Any,
) -> Estimate:
    """The estimate for what holds the message."""
    told = explain(message, place, tenant or Tenant(ACME), now=NOW)
    found = estimate(told, message, place, ended=ended, now=NOW, **({"circuits": ()} | known))
    assert found is not None
    return found


def test_window_is_the_recent_rate_faster_and_slower_by_a_factor() -> None:
    """The more attempts, the nearer to the factor of a steady tenant."""
    place = replace(READY, ahead=999)
    wait = 1000 / (11_000 / 330) * SECOND  # 11,000 attempts in five and a half minutes

    found = estimated(a_message(), place, 11_000)

    assert found.earliest is not None
    assert found.latest is not None
    assert wait / (STEADY + 0.15) < found.earliest - NOW < wait < found.latest - NOW
    assert found.latest - NOW < wait * (STEADY + 0.15)
    assert (found.ahead, found.per_minute) == (999, 2000)
    assert found.text.startswith("Estimate, if its tenant is served as in the last 6 min: 2000 att")
    few = estimated(a_message(), place, 4)
    assert few.latest is not None
    assert few.earliest is not None
    assert (few.latest - NOW) / (few.earliest - NOW) > (STEADY + 1) ** 2


@pytest.mark.parametrize(
    ("waits", "back"),
    [(0, 0), (29, 0), (31, 1), (89, 1), (91, 1), (150, 2), (329, 4), (331, 5), (9999, 5)],
)
def test_rate_is_measured_while_its_tenant_waited(waits: int, back: int) -> None:
    """In whole minutes before the current one, at least the one in which it began."""
    place = replace(READY, waits_since=NOW - waits * SECOND)

    assert minutes_back(a_message(due=-SECOND * 0), place, NOW) == back * MINUTE
    assert minutes_back(a_message(due=-waits * SECOND), READY, NOW) == back * MINUTE


def test_rate_of_a_tenant_without_a_wait_is_only_a_lower_bound() -> None:
    """It may be served much faster once it has more to send."""
    due = NOW + 10 * MINUTE
    place = replace(READY, parked_until=due, parked_ahead=60)
    message = a_message(10 * MINUTE)

    found = estimated(message, place, 33)

    assert minutes_back(message, place, NOW) == MOST_MINUTES * MINUTE
    assert found.earliest == due
    assert found.latest is not None
    assert found.latest - due > 10 * MINUTE


def test_parked_message_is_estimated_from_its_time_on() -> None:
    """Jobs that are ready now are served until then; those that become ready before it may still be there."""
    due = NOW + 10 * MINUTE
    place = replace(
        READY, parked_until=due, ahead=330, parked_ahead=10, waits_since=NOW - 9 * MINUTE
    )

    found = estimated(a_message(10 * MINUTE), place, 330)

    assert found.earliest == due
    assert found.latest is not None
    assert 10 * SECOND < found.latest - due < 30 * SECOND
    assert found.ahead == 340


def test_time_beyond_the_next_hour_is_not_estimated() -> None:
    due = NOW + 61 * MINUTE
    place = replace(READY, parked_until=due, parked_ahead=9)

    found = estimated(a_message(61 * MINUTE), place, 330)

    assert (found.earliest, found.latest, found.ahead) == (due, None, 9)
    assert "next hour" in found.text


def test_estimate_is_not_before_its_limit_ends() -> None:
    """The next token of its tenant, or the send limit."""
    limited = replace(READY, limited_until=NOW + 5 * MINUTE)

    found = estimated(a_message(), limited, 100)

    assert (found.earliest, found.latest) == (NOW + 5 * MINUTE, NOW + 5 * MINUTE)


def test_many_jobs_before_it_have_no_latest_time() -> None:
    """They are not counted further."""
    found = estimated(a_message(), replace(READY, ahead=MOST_AHEAD, parked_ahead=5), 10_000)

    assert found.earliest is not None
    assert (found.latest, found.ahead) == (None, MOST_AHEAD)
    assert "10,000 or more jobs before it" in found.text


def test_message_that_may_expire_first_says_so() -> None:
    message = replace(a_message(), expires_at=NOW + 5 * SECOND)

    assert estimated(message, replace(READY, ahead=999), 99).text.endswith("before it is sent.")
    assert "expire" not in estimated(message, READY, 9999).text


@pytest.mark.parametrize(
    ("place", "changes", "ended", "known", "said"),
    [
        (READY, {}, 0, {}, "no attempt of its tenant ended recently"),
        (READY, {}, 9, {"circuits": {"ses", "smtp"}}, "the circuit is open of ses, smtp."),
        (READY, {}, 9, {"tenant": Tenant(ACME, paused=True)}, "see why it waits"),
        (READY, {}, 9, {"tenant": Tenant(ACME, disabled=True)}, "see why it waits"),
        (replace(READY, is_claimed=True, parked_until=NOW + SECOND), {}, 9, {}, "see why it waits"),
        (READY, {"state": State.SENT_ATTEMPT}, 9, {}, "see why it waits"),
    ],
)
def test_message_without_an_estimate_says_why(
    place: QueuePlace, changes: dict[str, Any], ended: int, known: dict[str, Any], said: str
) -> None:
    """And has no latest time."""
    found = estimated(a_message(**changes), place, ended, **known)

    assert said in found.text
    assert found.text.startswith("No estimate")
    assert found.latest is None


def test_finished_message_has_none() -> None:
    message = a_message(state=State.SENT)
    told = explain(message, None, Tenant(ACME), now=NOW)

    assert estimate(told, message, None, ended=9, circuits=(), now=NOW) is None


def test_attempts_are_those_that_ended() -> None:
    """Whatever came of them."""
    figures: Any = {"ended.1": 5, "ended.10": 2, "sent.1": 5, "accepted": 9}

    assert attempts(figures) == 7


# --- simulation -------------------------------------------------------------------------------

_TICK_MS = 50


class World:
    """Tenants with a backlog, and workers that claim in turns; an attempt takes 200 to 800 ms."""

    def __init__(self, *shares: dict[str, Any], slots: int, seed: int) -> None:
        self.now = int(NOW.timestamp() * 1000) + random.Random(seed).randrange(60_000)
        self.chance = random.Random(seed)
        self.slots = slots
        self.kind = Kind(EMAIL)
        self.shares: list[dict[str, Any]] = []
        self.waiting: dict[int, list[Job]] = {}
        self.flights: list[tuple[int, int, str]] = []  # end, tenant, id
        self.ended: list[tuple[int, int]] = []  # time, tenant
        self.sent: dict[str, int] = {}
        self.v = self.turn = 0
        for share in shares:
            self.join(share)

    def join(self, share: dict[str, Any], backlog: int = 6000) -> None:
        """A tenant comes, with jobs that are due now."""
        no = len(self.shares)
        self.shares.append({"vt": self.v, "last_turn": self.turn, "next_us": 0, **share})
        self.waiting[no] = [(5, self.now, MessageId(f"{no}-{n:05}"), 0, n) for n in range(backlog)]

    # the supply of a walk

    def pages(self, kind: Kind) -> Iterator[list[Seat]]:
        yield sorted(
            (self._seat(no, kind) for no in self.waiting if self.waiting[no]),
            key=lambda seat: (seat.vt, seat.last_turn, seat.no),
        )

    def _seat(self, no: int, kind: Kind) -> Seat:
        told = self.shares[no]
        rate = told.get("rate")
        pace = None if rate is None else Pace.per_second(rate)
        cap, stride = told.get("cap"), fairness.stride(told.get("weight", 1.0))
        share = Share(
            TenantId(f"t{no}"), stride, cap, pace, told["next_us"], is_held=False, retry_preset=None
        )
        limited = cap is not None or pace is not None
        return Seat(no, kind, share, told["vt"], told["last_turn"], 0, is_limited=limited)

    def ready(self, seat: Seat) -> None:
        """Nothing is parked."""

    def refill(self, seat: Seat, wanted: int) -> None:
        taken = {job[2] for job in seat.taken}
        left = [
            job for job in self.waiting[seat.no][: wanted + 1 + len(taken)] if job[2] not in taken
        ]
        seat.jobs, seat.at, seat.has_more = left, 0, len(left) > wanted

    def in_flight(self, tenant: TenantId) -> tuple[int, int]:
        return sum(f"t{no}" == tenant for _, no, _ in self.flights), FAR

    # the time

    def run(self, length: timedelta) -> None:
        for _ in range(round(length / timedelta(milliseconds=_TICK_MS))):
            self.now += _TICK_MS
            for end, no, job in [each for each in self.flights if each[0] <= self.now]:
                self.flights.remove((end, no, job))
                self.ended.append((end, no))
                self.sent[job] = end
            self._claim()

    def _claim(self) -> None:
        walk = Walk(self, self.slots - len(self.flights), 0, self.now, v=self.v, turn=self.turn)
        walk.fair([self.kind], 3)
        self.v, self.turn = walk.v, walk.turn
        for no, seat in walk.moved.items():
            self.shares[no] |= {"vt": seat.vt, "last_turn": seat.last_turn}
            self.shares[no]["next_us"] = seat.share.next_us
            gone = {job[2] for job in seat.taken}
            del self.waiting[no][: len(gone)]
            for job in gone:
                self.flights.append((self.now + self.chance.randrange(200, 800), no, job))

    def asked(self, no: int, place: int) -> tuple[str, Estimate, datetime]:
        """The estimate for the job of a tenant that is at a place of its queue, as if asked now."""
        now = _moment(self.now)
        due_at, job = self.waiting[no][place][1:3]
        message = replace(a_message(), due_at=_moment(due_at))
        position = replace(
            READY,
            ahead=place,
            tenant_in_flight=self.in_flight(TenantId(f"t{no}"))[0],
            waits_since=_moment(min(each[1] for each in self.waiting[no][: place + 1])),
        )
        start = now.replace(second=0, microsecond=0) - minutes_back(message, position, now)
        ended = sum(at >= start.timestamp() * 1000 for at, whose in self.ended if whose == no)
        found = estimate(TURN, message, position, ended=ended, circuits=(), now=now)
        assert found is not None
        return job, found, now

    def until_sent(self, job: str) -> datetime:
        for _ in range(600):
            if job in self.sent:
                break
            self.run(SECOND)
        return _moment(self.sent[job])


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


SCENES: dict[str, list[dict[str, Any]]] = {
    "alone": [{}],
    "five in turns": [{}] * 5,
    "with a small weight": [{"weight": 0.5}, {"weight": 2.0}, {}],
    "with a large weight": [{"weight": 4.0}, {}, {}],
    "at its cap": [{"cap": 2}, {}],
    "at its rate": [{"rate": 3.0}, {}],
}


@pytest.mark.parametrize("scene", SCENES)
def test_message_is_sent_in_its_window(scene: str) -> None:
    """As long as the tenants that wait stay the same: asked early and late, about a near and a far message."""
    for seed in range(3):
        for asked_after in (7 * SECOND, 45 * SECOND, 150 * SECOND):
            world = World(*SCENES[scene], slots=10, seed=seed)
            world.run(asked_after)
            near = world.asked(0, 3)
            far = world.asked(0, 150)
            for job, found, _ in (near, far):
                assert found.earliest is not None, (seed, asked_after, found)
                assert found.latest is not None
                sent = world.until_sent(job)

                assert found.earliest <= sent <= found.latest, (seed, asked_after, sent, found)


def test_window_is_narrow_after_minutes() -> None:
    """The last possible time is at most three times as far as the first."""
    world = World(*SCENES["five in turns"], slots=10, seed=1)
    world.run(150 * SECOND)

    _, found, now = world.asked(0, 150)

    assert found.earliest is not None
    assert found.latest is not None
    assert (found.latest - now) / (found.earliest - now) < 3


def test_twice_as_many_tenants_take_at_most_twice_as_long() -> None:
    """The estimate knows nothing of them."""
    world = World(*SCENES["five in turns"], slots=10, seed=1)
    world.run(150 * SECOND)
    job, found, now = world.asked(0, 150)
    for _ in range(5):
        world.join({})

    sent = world.until_sent(job)

    assert found.earliest is not None
    assert found.latest is not None
    assert found.earliest < sent <= now + 2 * (found.latest - now)

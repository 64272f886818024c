"""Attempts with a separate queue: the queue is asked, and the ledger decides."""

from datetime import timedelta

import pytest

from carteiro.model import ClaimId, End, Lease, Start, State, Verdict
from carteiro.policy.lifecycle import Entry, begin
from carteiro.policy.pairing import is_clear, not_yet, owns_end, owns_start
from support.builders import TASK, a_claim_id, a_message, an_id, dead, retry, sent
from support.clock import StoreClock

NOW = StoreClock().now_ms
HOLD = timedelta(seconds=40)
HOLD_MS = 40_000
MINE, ANOTHER = a_claim_id(), a_claim_id()


def _entry(*, declares: bool = True, **changes: object) -> Entry:
    message = a_message() if declares else a_message(kind=TASK)
    entry = Entry(
        id=message.id,
        tenant=message.tenant,
        kind=message.kind,
        declares=declares,
        ttl_ms=86_400_000,
        state=State.ENQUEUED,
        due_at=NOW,
        expires_at=NOW + 86_400_000,
        attempts=0,
        charged=0,
        in_doubt=0,
        round=1,
        revision=1,
        holder=None,
        held_until=None,
        cancel_requested_at=None,
        evidence=None,
        provider=None,
        provider_id=None,
        failure=None,
        duration_ms=None,
        finished_at=None,
    )
    for name, given in changes.items():
        setattr(entry, name, given)
    return entry


def _attempted(by: ClaimId) -> Entry:
    entry = _entry()
    begin(entry, Start(Lease(entry.id, by), "sandbox", HOLD), owner=True, now=NOW)
    return entry


def _end(verdict: Verdict) -> End:
    return End(Lease(an_id(), MINE), verdict)


@pytest.mark.parametrize(("told", "owns"), [(True, True), (False, False), (None, True)])
def test_queue_decides_which_claim_may_declare(*, told: bool | None, owns: bool) -> None:
    """Where it cannot, the entry decides between the claims."""
    assert owns_start(_entry(), MINE, told=told, now=NOW) is owns


def test_attempt_in_flight_is_declared_with_any_answer_of_the_queue() -> None:
    """A queue that lost everything does not know it; after its hold the queue is asked again."""
    entry = _attempted(MINE)

    assert owns_start(entry, MINE, told=False, now=NOW)
    assert not owns_start(entry, MINE, told=False, now=NOW + HOLD_MS)


@pytest.mark.parametrize("told", [True, False, None])
def test_attempt_in_flight_is_settled_by_its_own_claim(*, told: bool | None) -> None:
    """Its hold counts, with any answer of the queue; and no other claim ends it."""
    assert owns_end(_attempted(MINE), _end(sent()), told=told, now=NOW)
    assert not owns_end(_attempted(ANOTHER), _end(sent()), told=told, now=NOW)


def test_queue_may_reassign_an_attempt_after_its_hold() -> None:
    """Without an answer of the queue and without another declare, it is still its own."""
    later = NOW + HOLD_MS

    assert not owns_end(_attempted(MINE), _end(sent()), told=False, now=later)
    assert owns_end(_attempted(MINE), _end(sent()), told=None, now=later)
    assert owns_end(_attempted(ANOTHER), _end(dead()), told=True, now=later)
    assert not owns_end(_attempted(ANOTHER), _end(dead()), told=None, now=later)


@pytest.mark.parametrize("told", [True, False, None])
def test_settled_message_is_not_settled_again(*, told: bool | None) -> None:
    """The queue may be behind: the entry shows the repetition."""
    entry = _entry(state=State.RETRY_SCHEDULED, holder=MINE)

    assert not owns_end(entry, _end(retry()), told=told, now=NOW)


def test_settle_without_a_queue_needs_no_attempt() -> None:
    """A task that ran, a message that can never be sent: true for any claim."""
    assert owns_end(_entry(declares=False), _end(sent()), told=None, now=NOW)
    assert owns_end(_entry(), _end(dead()), told=None, now=NOW)
    assert not owns_end(_entry(), _end(sent()), told=None, now=NOW)


def test_job_that_the_queue_kept_too_long_waits() -> None:
    """It is delayed to its time in the ledger; anything that the queue knew already is left to declare."""
    later = (State.RETRY_SCHEDULED, None, NOW + 1000)

    assert not_yet(*later, queued_at=NOW, now=NOW) == NOW + 1000
    assert not_yet(*later, queued_at=NOW + 1000, now=NOW) is None
    assert not_yet(State.SENT_ATTEMPT, NOW + 5, NOW, queued_at=NOW, now=NOW) == NOW + 5
    assert not_yet(State.SENT_ATTEMPT, NOW, NOW, queued_at=NOW, now=NOW) is None
    assert not_yet(State.ENQUEUED, None, NOW, queued_at=NOW, now=NOW) is None


def test_unexpired_lease_suffices_for_a_message_that_nobody_else_changed() -> None:
    """It waits since it was accepted, or has a live attempt of its own; else the queue must say who has the job."""
    assert is_clear(_entry(), MINE, now=NOW)
    assert is_clear(_entry(state=State.RETRY_SCHEDULED, holder=ANOTHER), MINE, now=NOW)
    assert is_clear(_attempted(MINE), MINE, now=NOW)
    for entry, now in (
        (_attempted(ANOTHER), NOW),
        (_attempted(MINE), NOW + HOLD_MS),
        (_entry(round=2), NOW),
        (_entry(state=State.RETRY_SCHEDULED, holder=MINE), NOW),
        (_entry(cancel_requested_at=NOW), NOW),
        (_entry(state=State.CANCELLED), NOW),
    ):
        assert not is_clear(entry, MINE, now=now), entry

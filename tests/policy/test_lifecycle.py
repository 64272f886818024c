"""Transitions of a message, as tables of cases over its ledger entry."""

from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carteiro.errors import TransitionRefused
from carteiro.model import (
    DEAD,
    EMAIL,
    FINISHED,
    Begun,
    CancelAnswer,
    ClaimId,
    DeadReason,
    End,
    Event,
    EventType,
    Late,
    Lease,
    MessageId,
    NoteAnswer,
    RedriveAnswer,
    Refused,
    RefusedWhy,
    Revision,
    Settled,
    Start,
    State,
    TenantId,
    Verdict,
)
from carteiro.policy.grouping import group_of
from carteiro.policy.lifecycle import (
    EXPIRED_UNSENT,
    LONGEST_HOLD_MS,
    Change,
    Entry,
    Stamped,
    begin,
    cancel,
    expire,
    finish,
    is_live,
    mark_failed,
    note,
    redrive,
    reschedule,
    restored_ttl,
)
from support.builders import a_failure, dead, retry, sent
from support.feedback import a_feedback

NOW = 1_000_000
TTL_MS = 60_000
HOLD = timedelta(seconds=40)
HOLD_MS = 40_000
ME, OTHER = ClaimId("me"), ClaimId("other")
UNFINISHED = [State.ENQUEUED, State.SENT_ATTEMPT, State.RETRY_SCHEDULED]


def an_entry(state: State = State.ENQUEUED, **changes: Any) -> Entry:
    """An entry that was accepted a moment ago and may be sent; ``changes`` are its fields."""
    fields: dict[str, Any] = {
        "id": MessageId("message"),
        "tenant": TenantId("acme"),
        "kind": EMAIL,
        "declares": True,
        "ttl_ms": TTL_MS,
        "due_at": NOW - 1000,
        "expires_at": NOW - 1000 + TTL_MS,
        "attempts": 0,
        "charged": 0,
        "in_doubt": 0,
        "round": 1,
        "revision": 1,
        "holder": None,
        "held_until": None,
        "cancel_requested_at": None,
        "evidence": None,
        "provider": None,
        "provider_id": None,
        "failure": None,
        "duration_ms": None,
        "finished_at": NOW - 500 if state in FINISHED else None,
    }
    return Entry(state=state, **(fields | changes))


def an_open_entry(holder: ClaimId = OTHER, **changes: Any) -> Entry:
    """An entry with an attempt that is declared and live."""
    fields: dict[str, Any] = {"attempts": 1, "holder": holder, "held_until": NOW + 1}
    return an_entry(State.SENT_ATTEMPT, **(fields | changes))


def a_start(claim: ClaimId = ME, **changes: Any) -> Start:
    """An attempt that the claim wants to make."""
    return Start(Lease(MessageId("message"), claim), "sandbox", HOLD, **changes)


def an_end(verdict: Verdict, claim: ClaimId = ME, **changes: Any) -> End:
    """A verdict of the claim."""
    return End(Lease(MessageId("message"), claim), verdict, **changes)


def types(change: Change | None) -> list[EventType]:
    """The events of a change."""
    return [] if change is None else [event.type for event in change.events]


# --- live -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        (None, False),
        (NOW - 1, False),
        (NOW, False),
        (NOW + 1, True),
        (NOW + LONGEST_HOLD_MS, True),
        (NOW + LONGEST_HOLD_MS + 1, False),
    ],
)
def test_lease_is_valid_until_its_end_and_never_too_long(
    until: int | None, *, expected: bool
) -> None:
    """One that ends later than any lease may is the effect of a clock that stepped back."""
    assert is_live(until, NOW) is expected


# --- begin ------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [State.ENQUEUED, State.RETRY_SCHEDULED])
def test_attempt_begins(state: State) -> None:
    """It is counted, held by its claim, and recorded after the stages before it."""
    entry = an_entry(state, attempts=2, charged=2)
    received = Event(EventType.RECEIVED, {"n": 1}, ago=timedelta(milliseconds=7))

    answer, change = begin(entry, a_start(events=(received,)), owner=True, now=NOW)

    assert answer == Begun(3)
    assert entry == an_entry(
        State.SENT_ATTEMPT,
        attempts=3,
        charged=2,
        holder=ME,
        held_until=NOW + HOLD_MS,
        provider="sandbox",
    )
    assert change == Change(
        (
            Stamped(EventType.RECEIVED, {"n": 1}, NOW - 7),
            Stamped(EventType.SENT_ATTEMPT, {"attempt": 3, "provider": "sandbox"}, NOW),
        )
    )


def test_attempt_after_an_open_one_counts_the_doubt() -> None:
    """Both agree that the last attempt is in doubt: it is counted with the new one."""
    entry = an_open_entry(held_until=NOW)

    answer, change = begin(entry, a_start(open_attempt=True), owner=True, now=NOW)

    assert answer == Begun(2)
    assert (entry.in_doubt, entry.attempts, entry.holder) == (1, 2, ME)
    assert types(change) == [EventType.SENT_ATTEMPT]


@pytest.mark.parametrize(
    "held_until", [NOW + 1, NOW - 1], ids=["while it is live", "after its hold"]
)
def test_repeated_begin_is_the_same_attempt(held_until: int) -> None:
    """The claim that began gets the same answer and changes nothing, though its hold ran out."""
    entry = an_open_entry(ME, held_until=held_until)
    before = deepcopy(entry)

    assert begin(entry, a_start(), owner=True, now=NOW) == (Begun(1), None)
    assert entry == before


_REFUSED: list[tuple[str, Entry, Start, bool, Refused]] = [
    *(
        (f"{state} by its owner", an_entry(state), a_start(), True, Refused(RefusedWhy.FINISHED))
        for state in sorted(FINISHED)
    ),
    ("finished, not owned", an_entry(State.SENT), a_start(), False, Refused(RefusedWhy.FINISHED)),
    ("not owned", an_entry(), a_start(), False, Refused(RefusedWhy.LOST)),
    ("begun, then lost", an_open_entry(ME), a_start(), False, Refused(RefusedWhy.LOST)),
    (
        "held by another",
        an_open_entry(held_until=NOW + 700),
        a_start(open_attempt=True),
        True,
        Refused(RefusedWhy.HELD, timedelta(milliseconds=700)),
    ),
    (
        "open, unknown to the claimer",
        an_open_entry(held_until=NOW),
        a_start(),
        True,
        Refused(RefusedWhy.LOST),
    ),
    (
        "not open, though the claimer thinks so",
        an_entry(State.RETRY_SCHEDULED),
        a_start(open_attempt=True),
        True,
        Refused(RefusedWhy.LOST),
    ),
    (
        "cancel requested",
        an_entry(cancel_requested_at=NOW - 1),
        a_start(),
        True,
        Refused(RefusedWhy.CANCELLED),
    ),
    ("expired", an_entry(expires_at=NOW), a_start(), True, Refused(RefusedWhy.EXPIRED)),
    (
        "not due",
        an_entry(due_at=NOW + 300),
        a_start(),
        True,
        Refused(RefusedWhy.NOT_DUE, timedelta(milliseconds=300)),
    ),
    (
        "cancelled before expired",
        an_entry(cancel_requested_at=NOW - 1, expires_at=NOW),
        a_start(),
        True,
        Refused(RefusedWhy.CANCELLED),
    ),
]


@pytest.mark.parametrize(
    ("entry", "start", "owner", "expected"),
    [case[1:] for case in _REFUSED],
    ids=[case[0] for case in _REFUSED],
)
def test_attempt_is_refused(entry: Entry, start: Start, expected: Refused, *, owner: bool) -> None:
    """The answer has the reason and the time to wait; the entry is not changed."""
    before = deepcopy(entry)

    assert begin(entry, start, owner=owner, now=NOW) == (expected, None)
    assert entry == before


# --- finish, by the owner ---------------------------------------------------------------------


def test_success_ends_a_message() -> None:
    """SENT with the provider's id; job and dead letter go, an earlier failure is forgotten."""
    entry = an_open_entry(ME, failure=a_failure(), charged=1, round=2)
    end = an_end(sent("id-9"), duration=timedelta(milliseconds=70))

    answer, change = finish(entry, end, owner=True, now=NOW)

    metadata = {"sesMessageId": "id-9", "provider": "sandbox", "durationMs": 70, "attempt": 1}
    assert answer == Settled(State.SENT)
    assert entry == an_entry(
        State.SENT,
        attempts=1,
        charged=1,
        round=2,
        holder=ME,
        provider="sandbox",
        provider_id="id-9",
        duration_ms=70,
        finished_at=NOW,
    )
    assert change == Change((Stamped(EventType.SENT, metadata, NOW),), drop_job=True, unburied=True)


@pytest.mark.parametrize(("charged", "expected"), [(True, 3), (False, 2)])
def test_retry_parks_the_job(expected: int, *, charged: bool) -> None:
    """Only a charged failure counts; the store's now is added to the delay."""
    entry = an_open_entry(ME, charged=2)
    verdict = retry(timedelta(seconds=5), charged=charged)

    answer, change = finish(entry, an_end(verdict), owner=True, now=NOW)

    assert answer == Settled(State.RETRY_SCHEDULED)
    assert (entry.state, entry.charged) == (State.RETRY_SCHEDULED, expected)
    assert (entry.due_at, entry.held_until, entry.holder) == (NOW + 5000, None, ME)
    assert entry.failure == verdict.failure
    assert entry.finished_at is None
    assert change is not None
    assert (change.park_until, change.drop_job, change.buried) == (NOW + 5000, False, None)
    [event] = change.events
    assert event.type is EventType.RETRY_SCHEDULED
    assert event.metadata == {
        "errorCode": "421",
        "errorCategory": "TRANSIENT_ERROR",
        "originalCode": "421 4.3.2",
        "errorMessage": "Service not available, try later",
        "scope": "destination",
        "rule": "smtp.421",
        "willRetry": True,
        "nextAttemptNumber": 2,
        "backoffDelay": 5000,
    }


@pytest.mark.parametrize("reason", DeadReason)
def test_death_creates_a_dead_letter(reason: DeadReason) -> None:
    """FAILED, or EXPIRED when time ran out; the dead letter has the reason and the number of failures."""
    entry = an_open_entry(ME, charged=4)
    verdict = dead(reason)

    answer, change = finish(entry, an_end(verdict), owner=True, now=NOW)

    state = State.EXPIRED if reason is DeadReason.EXPIRED else State.FAILED
    assert answer == Settled(state)
    assert (entry.state, entry.charged, entry.finished_at) == (state, 5, NOW)
    assert change is not None
    assert change.buried is not None
    assert change.buried[:3] == (reason, verdict.failure, 5)
    assert (change.drop_job, change.unburied) == (True, False)
    assert types(change) == [EventType(state.value)]
    assert change.events[0].metadata["willRetry"] is False
    assert change.events[0].metadata["reason"] == reason.value


@pytest.mark.parametrize(
    ("after_ms", "state"),
    [(59_000 - 1, State.RETRY_SCHEDULED), (59_000, State.EXPIRED), (59_001, State.EXPIRED)],
)
def test_retry_after_the_expiry_is_an_expiry(after_ms: int, state: State) -> None:
    """A message that cannot be due in time is a dead letter now, with its failure."""
    entry = an_open_entry(ME)
    verdict = retry(timedelta(milliseconds=after_ms))

    answer, change = finish(entry, an_end(verdict), owner=True, now=NOW)

    assert entry.expires_at == NOW + 59_000
    assert answer == Settled(state)
    assert entry.charged == 1
    assert change is not None
    assert (change.buried is not None) is (state is State.EXPIRED)


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (retry(), State.CANCELLED),
        (retry(timedelta(seconds=58)), State.CANCELLED),
        (sent(), State.SENT),
        (dead(), State.FAILED),
    ],
    ids=["retry", "long retry", "sent", "dead"],
)
def test_requested_cancel_replaces_the_retry(verdict: Verdict, state: State) -> None:
    """A success stays SENT and a failure FAILED; only the next attempt is cancelled."""
    entry = an_open_entry(ME, cancel_requested_at=NOW - 1)

    answer, change = finish(entry, an_end(verdict), owner=True, now=NOW)

    assert answer == Settled(state)
    assert types(change) == [EventType(state.value)]
    assert change is not None
    assert change.drop_job


@pytest.mark.parametrize("verdict", [sent(), retry(), dead()], ids=["sent", "retry", "dead"])
@pytest.mark.parametrize("state", sorted(FINISHED))
def test_stale_job_of_a_finished_message_is_acknowledged(state: State, verdict: Verdict) -> None:
    """With any verdict the message is not changed; only the job goes."""
    entry = an_entry(state)
    before = deepcopy(entry)

    answer = finish(entry, an_end(verdict), owner=True, now=NOW)

    assert answer == (Settled(state), Change(drop_job=True))
    assert entry == before


def test_end_adds_its_own_events_and_counts() -> None:
    """Events of the stages come first; undeclared attempts and doubts are counted here."""
    entry = an_entry(declares=False)
    received = Event(EventType.RECEIVED, {}, ago=timedelta(milliseconds=3))
    end = an_end(retry(), events=(received,), attempted=True, in_doubt=1)

    _, change = finish(entry, end, owner=True, now=NOW)

    assert (entry.attempts, entry.in_doubt) == (1, 1)
    assert change is not None
    assert change.events[0] == Stamped(EventType.RECEIVED, {}, NOW - 3)
    assert types(change) == [EventType.RECEIVED, EventType.RETRY_SCHEDULED]


@pytest.mark.parametrize("verdict", [retry(), dead()], ids=["retry", "dead"])
def test_failure_after_late_evidence_is_a_success(verdict: Verdict) -> None:
    """Another worker's success is known: this failure neither repeats nor ends the message."""
    entry = an_open_entry(ME, evidence='["other", "smtp", "late-id"]')

    answer, change = finish(entry, an_end(verdict), owner=True, now=NOW)

    assert answer == Settled(State.SENT)
    assert (entry.provider, entry.provider_id) == ("smtp", "late-id")
    assert change is not None
    assert change.events[0].metadata["late"] is True


def test_verdict_overruled_by_evidence_leaves_no_state() -> None:
    """A message that was delivered after all never entered the overruled state; the doubt stays."""
    doubt = Event(EventType.IN_DOUBT, {})
    failed = Event(EventType.VALIDATION_FAILED, {})
    entry = an_entry(State.SENT_ATTEMPT, evidence='["late", "sandbox", "id-1"]', holder=OTHER)
    verdict = dead(DeadReason.VALIDATION_FAILED, charged=False)
    end = End(Lease(entry.id, ME), verdict, (doubt, failed), in_doubt=1)

    _, change = finish(entry, end, owner=True, now=NOW)

    assert change is not None
    assert [event.type for event in change.events] == [EventType.IN_DOUBT, EventType.SENT]


def test_delivered_message_is_not_attempted_again() -> None:
    """A known late success prevents another attempt."""
    entry = an_entry(State.SENT_ATTEMPT, evidence='["late", "sandbox", "id-1"]', holder=OTHER)
    start = Start(Lease(entry.id, ME), "sandbox", HOLD, open_attempt=True)

    answer, change = begin(entry, start, owner=True, now=NOW)

    assert (answer, change) == (Refused(RefusedWhy.DELIVERED), None)


@pytest.mark.parametrize(
    ("last", "carriers", "teller"),
    [
        ("ses:eu-west-1", {"ses:eu-west-1"}, "ses:eu-west-1"),
        ("ses:eu-west-1", {"ses:eu-west-1", "ses:us-east-1"}, "ses:eu-west-1"),
        ("resend", {"resend", "ses:eu-west-1"}, "ses:eu-west-1"),
        ("resend", {"resend", "ses:eu-west-1", "ses:us-east-1"}, "ses"),
        ("smtp", {"smtp"}, "smtp"),
    ],
)
def test_evidence_is_recorded_under_its_reporter(
    last: str, carriers: set[str], teller: str
) -> None:
    """Not under the provider of the last attempt, which does not know the id."""
    entry = an_entry(State.RETRY_SCHEDULED, provider=last, attempts=2, in_doubt=1)
    told = a_feedback(entry.id, EventType.SENT, provider="ses", relays=("smtp",))

    answer, _ = note(entry, told, known=(), carriers=carriers, at=NOW, now=NOW)

    assert answer is NoteAnswer.RESOLVED
    assert (entry.state, entry.provider, entry.provider_id) == (State.SENT, teller, "ses-1")


def test_success_after_late_evidence_is_recorded_as_its_own() -> None:
    entry = an_open_entry(ME, evidence='["other", "smtp", "late-id"]')

    _, change = finish(entry, an_end(sent("mine")), owner=True, now=NOW)

    assert entry.provider_id == "mine"
    assert change is not None
    assert "late" not in change.events[0].metadata


# --- finish, without the claim ----------------------------------------------------------------


@pytest.mark.parametrize("verdict", [sent(), retry(), dead()], ids=["sent", "retry", "dead"])
@pytest.mark.parametrize("state", [*sorted(FINISHED), State.RETRY_SCHEDULED])
def test_repeated_end_gets_the_same_answer(state: State, verdict: Verdict) -> None:
    """The worker that settled last gets the state of its own verdict."""
    entry = an_entry(state, holder=ME)
    before = deepcopy(entry)

    assert finish(entry, an_end(verdict), owner=False, now=NOW) == (Settled(state), None)
    assert entry == before


@pytest.mark.parametrize("verdict", [retry(), dead()], ids=["retry", "dead"])
@pytest.mark.parametrize(
    "entry",
    [an_entry(state, holder=OTHER) for state in (*sorted(FINISHED), *UNFINISHED)]
    + [an_open_entry(), an_open_entry(ME, held_until=NOW)],
    ids=lambda entry: f"{entry.state}-{entry.holder}-{entry.held_until}",
)
def test_late_failure_is_ignored_in_every_state(entry: Entry, verdict: Verdict) -> None:
    """It changes nothing and leaves no trace."""
    before = deepcopy(entry)

    answer = finish(entry, an_end(verdict), owner=False, now=NOW)

    assert answer == (Late(before.state), None)
    assert entry == before


_LATE_SUCCESS: list[tuple[str, Entry, State, bool]] = [
    ("accepted, or redriven", an_entry(), State.SENT, True),
    ("waiting for a retry", an_entry(State.RETRY_SCHEDULED, holder=OTHER), State.SENT, True),
    ("in doubt, its own", an_open_entry(ME, held_until=NOW), State.SENT, True),
    ("in doubt, another's", an_open_entry(held_until=NOW), State.SENT, True),
    ("failed", an_entry(State.FAILED, holder=OTHER), State.SENT, True),
    ("expired", an_entry(State.EXPIRED, holder=OTHER), State.SENT, True),
    ("an attempt is live", an_open_entry(), State.SENT_ATTEMPT, False),
    ("already sent", an_entry(State.SENT, holder=OTHER), State.SENT, False),
    ("cancelled", an_entry(State.CANCELLED, holder=OTHER), State.CANCELLED, False),
]


@pytest.mark.parametrize(
    ("entry", "state", "decides"),
    [case[1:] for case in _LATE_SUCCESS],
    ids=[case[0] for case in _LATE_SUCCESS],
)
def test_late_success_is_kept_and_decides_unless_in_flight(
    entry: Entry, state: State, *, decides: bool
) -> None:
    """The evidence is always an event; it ends the message unless that is finished or being sent."""
    before = deepcopy(entry)

    answer, change = finish(entry, an_end(sent("late")), owner=False, now=NOW)

    assert answer == Late(state)
    assert entry.state is state
    assert entry.evidence is not None
    assert change is not None
    expected = [EventType.LATE_RESULT, EventType.SENT] if decides else [EventType.LATE_RESULT]
    assert types(change) == expected
    assert (change.drop_job, change.unburied) == (decides, decides and before.state in DEAD)
    if decides:
        assert (entry.provider_id, entry.held_until, entry.finished_at) == ("late", None, NOW)
        assert entry.holder == before.holder
    else:
        before.evidence = entry.evidence
        assert entry == before


def test_known_late_success_is_ignored() -> None:
    """The same claim's evidence is kept once; another claim's is new again."""
    entry = an_open_entry()
    finish(entry, an_end(sent("late")), owner=False, now=NOW)
    before = deepcopy(entry)

    again = finish(entry, an_end(sent("late")), owner=False, now=NOW)
    third = finish(entry, an_end(sent("later"), ClaimId("third")), owner=False, now=NOW)

    assert again == (Late(State.SENT_ATTEMPT), None)
    assert types(third[1]) == [EventType.LATE_RESULT]
    assert entry.evidence != before.evidence


def test_late_success_of_an_earlier_revision_proves_nothing() -> None:
    """It is an event, recorded once; the edited content is still to be sent."""
    entry = an_entry(State.ENQUEUED, round=2, revision=2)
    late = replace(an_end(sent("late")), revision=1)

    first = finish(entry, late, owner=False, now=NOW)
    again = finish(entry, late, owner=False, now=NOW)

    assert first[0] == again[0] == Late(State.ENQUEUED)
    assert types(first[1]) == [EventType.LATE_RESULT]
    assert first[1] is not None
    assert first[1].events[0].metadata["revision"] == 1
    assert again[1] is None
    answer, _ = begin(entry, a_start(), owner=True, now=NOW)
    assert answer == Begun(1)
    _, change = finish(entry, an_end(retry()), owner=True, now=NOW)
    assert types(change) == [EventType.RETRY_SCHEDULED]


def test_proof_outlasts_a_late_success_of_an_earlier_revision() -> None:
    """Evidence of the present revision is kept."""
    entry = an_open_entry(revision=2)
    finish(entry, replace(an_end(sent("now")), revision=2), owner=False, now=NOW)
    before = entry.evidence

    stale = replace(an_end(sent("old"), ClaimId("third")), revision=1)
    finish(entry, stale, owner=False, now=NOW)

    assert entry.evidence == before


# --- cancel -----------------------------------------------------------------------------------

_CANCELS: list[tuple[str, Entry, bool, CancelAnswer]] = [
    ("waiting", an_entry(), False, CancelAnswer.CANCELLED),
    ("redriven", an_entry(round=2), False, CancelAnswer.CANCELLED),
    ("waiting for a retry", an_entry(State.RETRY_SCHEDULED), False, CancelAnswer.CANCELLED),
    ("claimed, not declared", an_entry(), True, CancelAnswer.CANCELLED),
    ("task, waiting", an_entry(declares=False), False, CancelAnswer.CANCELLED),
    ("task, running", an_entry(declares=False), True, CancelAnswer.REQUESTED),
    ("declared, live", an_open_entry(), True, CancelAnswer.REQUESTED),
    ("declared, in doubt", an_open_entry(held_until=NOW), False, CancelAnswer.REQUESTED),
    (
        "task, asked before, vanished",
        an_entry(declares=False, cancel_requested_at=NOW - 1),
        False,
        CancelAnswer.CANCELLED,
    ),
]


@pytest.mark.parametrize(
    ("entry", "leased", "expected"),
    [case[1:] for case in _CANCELS],
    ids=[case[0] for case in _CANCELS],
)
def test_cancel_ends_waiting_messages_and_marks_those_in_flight(
    entry: Entry, expected: CancelAnswer, *, leased: bool
) -> None:
    """A message that may have been handed over is only marked: it may still turn out to be sent."""
    state = entry.state

    answer, change = cancel(entry, leased=leased, now=NOW)

    assert answer is expected
    assert change is not None
    if expected is CancelAnswer.CANCELLED:
        assert (entry.state, entry.finished_at) == (State.CANCELLED, NOW)
        assert types(change) == [EventType.CANCELLED]
        assert (change.drop_job, change.unburied) == (True, entry.round > 1)
    else:
        assert (entry.state, entry.cancel_requested_at) == (state, NOW)
        assert change == Change((Stamped(EventType.CANCEL_REQUESTED, {}, NOW),))


@pytest.mark.parametrize("state", sorted(FINISHED))
@pytest.mark.parametrize("leased", [True, False])
def test_finished_message_is_not_cancelled(state: State, *, leased: bool) -> None:
    """Nothing changes."""
    entry = an_entry(state)
    before = deepcopy(entry)

    assert cancel(entry, leased=leased, now=NOW) == (CancelAnswer.FINISHED, None)
    assert entry == before


def test_cancel_is_marked_once() -> None:
    """A repetition keeps the first time."""
    entry = an_open_entry(cancel_requested_at=NOW - 9)

    assert cancel(entry, leased=True, now=NOW) == (CancelAnswer.REQUESTED, None)
    assert entry.cancel_requested_at == NOW - 9


# --- expire -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "leased"),
    [
        (an_entry(expires_at=NOW + 1), False),
        *((an_entry(state, expires_at=NOW), False) for state in sorted(FINISHED)),
        (an_open_entry(expires_at=NOW), True),
        (an_open_entry(expires_at=NOW, held_until=NOW), False),
        (an_entry(declares=False, expires_at=NOW), True),
    ],
    ids=["in time", *sorted(FINISHED), "in flight", "in doubt", "running task"],
)
def test_message_in_time_finished_or_in_flight_does_not_expire(
    entry: Entry, *, leased: bool
) -> None:
    """A running send or an open attempt is left to its claimer."""
    before = deepcopy(entry)

    assert expire(entry, leased=leased, now=NOW) is None
    assert entry == before


@pytest.mark.parametrize(
    ("entry", "leased"),
    [
        (an_entry(expires_at=NOW), False),
        (an_entry(expires_at=NOW), True),
        (an_entry(State.RETRY_SCHEDULED, expires_at=NOW - 1), False),
        (an_entry(declares=False, expires_at=NOW), False),
    ],
    ids=["waiting", "claimed, not declared", "retry", "task, waiting"],
)
def test_overdue_message_becomes_a_dead_letter(entry: Entry, *, leased: bool) -> None:
    """EXPIRED, with a reason even if it was never tried."""
    change = expire(entry, leased=leased, now=NOW)

    assert (entry.state, entry.finished_at) == (State.EXPIRED, NOW)
    assert change is not None
    assert change.buried is not None
    assert change.buried[:3] == (DeadReason.EXPIRED, EXPIRED_UNSENT, 0)
    assert types(change) == [EventType.EXPIRED]
    assert change.drop_job


def test_expired_message_keeps_its_last_failure() -> None:
    """It says why the message was not sent."""
    entry = an_entry(State.RETRY_SCHEDULED, expires_at=NOW, failure=a_failure(), charged=3)

    change = expire(entry, leased=False, now=NOW)

    assert change is not None
    assert change.buried is not None
    assert change.buried[:3] == (DeadReason.EXPIRED, a_failure(), 3)


def test_message_to_be_cancelled_is_cancelled_instead() -> None:
    """Its cancel was only waiting for the attempt to end."""
    entry = an_entry(declares=False, expires_at=NOW, cancel_requested_at=NOW - 1)

    change = expire(entry, leased=False, now=NOW)

    assert entry.state is State.CANCELLED
    assert types(change) == [EventType.CANCELLED]


# --- redrive ----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", sorted(DEAD))
def test_redrive_starts_a_new_round(state: State) -> None:
    """A new ttl, no charges and no doubts; attempts stay counted, old evidence no longer counts."""
    entry = an_entry(
        state,
        attempts=6,
        charged=5,
        in_doubt=1,
        holder=OTHER,
        cancel_requested_at=NOW - 9,
        evidence='["other", "smtp", "id"]',
        failure=a_failure(),
    )
    died_at = entry.finished_at

    answer, change = redrive(entry, by="ana", has_content=True, now=NOW)

    assert answer is RedriveAnswer.REDRIVEN
    assert entry == an_entry(
        State.ENQUEUED,
        attempts=6,
        round=2,
        holder=OTHER,
        failure=a_failure(),
        retry_of=f"{group_of(entry.provider, a_failure())}@{died_at}",
        due_at=NOW,
        expires_at=NOW + TTL_MS,
    )
    assert change == Change((Stamped(EventType.ENQUEUED, {"round": 2, "redrivenBy": "ana"}, NOW),))


@pytest.mark.parametrize("state", sorted(set(State) - FINISHED))
def test_redriven_message_is_not_redriven_again(state: State) -> None:
    """It is in flight, in any state."""
    entry = an_entry(state, round=2)
    before = deepcopy(entry)

    answer = redrive(entry, by="ana", has_content=True, now=NOW)

    assert answer == (RedriveAnswer.ALREADY, None)
    assert entry == before


@pytest.mark.parametrize("state", sorted(DEAD))
def test_message_without_content_is_not_redriven(state: State) -> None:
    """Its body was pruned."""
    entry = an_entry(state)
    before = deepcopy(entry)

    answer = redrive(entry, by="ana", has_content=False, now=NOW)

    assert answer == (RedriveAnswer.NO_CONTENT, None)
    assert entry == before


def test_outdated_redrive_is_refused() -> None:
    """An edit made meanwhile must not be lost."""
    entry = an_entry(State.FAILED)
    before = deepcopy(entry)

    stale = Revision("{}", None, None, of=2)
    answer = redrive(entry, by="ana", has_content=True, now=NOW, revision=stale)

    assert answer == (RedriveAnswer.CHANGED, None)
    assert entry == before


def test_redrive_with_new_content_records_the_revision() -> None:
    """The timeline shows where the content changed."""
    entry = an_entry(State.FAILED)

    _, change = redrive(
        entry, by="ana", has_content=False, now=NOW, revision=Revision("{}", None, None, of=1)
    )

    assert entry.revision == 2
    told = {"round": 2, "redrivenBy": "ana", "revision": 2}
    assert change == Change((Stamped(EventType.ENQUEUED, told, NOW),))


def test_restored_dead_letter_keeps_its_time_unless_it_is_over() -> None:
    """It must not be deleted at once."""
    assert restored_ttl(NOW - 5, 10, NOW) == 10
    assert restored_ttl(NOW - 10, 10, NOW) == 20
    assert restored_ttl(NOW - 95, 10, NOW) == 105


@pytest.mark.parametrize("state", sorted(set(State) - DEAD))
def test_only_dead_messages_are_redriven(state: State) -> None:
    """Others have no dead letter."""
    entry = an_entry(state)
    before = deepcopy(entry)

    assert redrive(entry, by="ana", has_content=True, now=NOW) == (RedriveAnswer.NOT_FOUND, None)
    assert entry == before


@pytest.mark.parametrize("verdict", [sent("id"), retry()], ids=["sent", "retry"])
def test_undeclared_attempt_cannot_end(verdict: Verdict) -> None:
    """The table has no such transition: an error, and nothing is changed."""
    entry = an_entry()
    before = deepcopy(entry)

    with pytest.raises(TransitionRefused):
        finish(entry, an_end(verdict), owner=True, now=NOW)

    assert entry == before


# --- in doubt, with any cause of the end


@pytest.mark.parametrize("reason", [each for each in DeadReason if each is not DeadReason.IN_DOUBT])
def test_possibly_handed_over_message_ends_in_doubt(reason: DeadReason) -> None:
    """Timeline and dead letter have both: the doubt, and the cause of the end."""
    entry = an_open_entry(ME, in_doubt=1)
    failure = a_failure(code="RESEND_INVALID_IDEMPOTENT_REQUEST")

    _, change = finish(entry, an_end(replace(dead(reason), failure=failure)), owner=True, now=NOW)

    assert change is not None
    assert change.buried is not None
    assert (change.buried.reason, change.buried.failure) == (DeadReason.IN_DOUBT, failure)
    told = change.events[-1].metadata
    assert (told["reason"], told["endedBy"]) == ("in_doubt", reason.value)
    assert told["errorCode"] == failure.code
    assert entry.state is (State.EXPIRED if reason is DeadReason.EXPIRED else State.FAILED)


def test_doubt_that_ends_a_message_is_counted() -> None:
    """An open attempt that is found is a doubt, also where a validation ends the message."""
    entry = an_open_entry(ME, in_doubt=0)
    end = an_end(dead(DeadReason.VALIDATION_FAILED), in_doubt=1)

    _, change = finish(entry, end, owner=True, now=NOW)

    assert change is not None
    assert change.buried is not None
    assert change.buried.reason is DeadReason.IN_DOUBT


def test_message_that_expires_after_a_doubt_ends_in_doubt() -> None:
    """By maintenance alone, without a claimer."""
    entry = an_entry(State.RETRY_SCHEDULED, in_doubt=1, expires_at=NOW, failure=a_failure())

    change = expire(entry, leased=False, now=NOW)

    assert change is not None
    assert change.buried is not None
    assert (entry.state, change.buried.reason) == (State.EXPIRED, DeadReason.IN_DOUBT)
    assert change.events[-1].metadata["endedBy"] == "expired"


def test_reason_without_a_doubt_is_the_cause_alone() -> None:
    entry = an_open_entry(ME)

    _, change = finish(entry, an_end(dead()), owner=True, now=NOW)

    assert change is not None
    assert "endedBy" not in change.events[-1].metadata


# --- requests of an application
# -------------------------------------------------------------------


@pytest.mark.parametrize("state", [*FINISHED, State.SENT_ATTEMPT])
def test_finished_or_in_flight_message_is_neither_rescheduled_nor_marked(state: State) -> None:
    """The attempt in flight decides; a finished message is not changed."""
    entry = an_entry(state)
    before = deepcopy(entry)

    assert reschedule(entry, at=NOW + 1) is None
    assert mark_failed(entry, "no", wait=timedelta(minutes=1), now=NOW) is None
    assert entry == before


@pytest.mark.parametrize("state", [State.ENQUEUED, State.RETRY_SCHEDULED])
def test_rescheduled_message_has_its_whole_lifetime(state: State) -> None:
    """It does not expire while it is to wait, nor sooner than it would have."""
    later, sooner = an_entry(state), an_entry(state)
    expiry = later.expires_at

    change = reschedule(later, at=NOW + 2 * TTL_MS)
    assert reschedule(sooner, at=NOW - 2000) == Change(park_until=NOW - 2000)

    assert change == Change(park_until=NOW + 2 * TTL_MS)
    assert (later.due_at, later.expires_at) == (NOW + 2 * TTL_MS, NOW + 3 * TTL_MS)
    assert (sooner.due_at, sooner.expires_at, sooner.state) == (NOW - 2000, expiry, state)


def _marked(entry: Entry, wait: timedelta | None, reason: str | None = "no") -> Change:
    change = mark_failed(entry, reason, wait=wait, now=NOW)
    assert change is not None
    return change


def test_marked_failure_is_charged_and_delayed() -> None:
    """As one of a worker's: the attempt was the application's own."""
    entry = an_entry(attempts=1, charged=1)

    change = _marked(entry, timedelta(seconds=5))

    assert (entry.state, entry.attempts, entry.charged) == (State.RETRY_SCHEDULED, 2, 2)
    assert (entry.due_at, change.park_until) == (NOW + 5000, NOW + 5000)
    assert [each.type for each in change.events] == [
        EventType.RECEIVED,
        EventType.SENT_ATTEMPT,
        EventType.RETRY_SCHEDULED,
    ]
    assert change.events[1].metadata == {"attempt": 2, "provider": "application"}


@pytest.mark.parametrize(
    ("wait", "state", "reason"),
    [
        (None, State.FAILED, DeadReason.MAX_ATTEMPTS_EXCEEDED),
        (timedelta(milliseconds=TTL_MS), State.EXPIRED, DeadReason.EXPIRED),
    ],
)
def test_last_marked_failure_is_final(
    wait: timedelta | None, state: State, reason: DeadReason
) -> None:
    """And so is one whose delay would outlast the message."""
    entry = an_entry()

    change = _marked(entry, wait)

    assert (entry.state, entry.charged, entry.finished_at) == (state, 1, NOW)
    assert change.drop_job
    assert change.buried is not None
    assert change.buried.reason is reason


def test_late_success_beats_a_marked_failure() -> None:
    """The mail was delivered, despite the application's report."""
    entry = an_entry(State.RETRY_SCHEDULED, attempts=1, evidence='["other", "sandbox", "id", 1]')

    _marked(entry, None)

    assert (entry.state, entry.provider_id, entry.attempts) == (State.SENT, "id", 1)


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("no", "no"),
        ("", "No reason was given"),
        (None, "No reason was given"),
        ("x" * 600, "x" * 500),
    ],
)
def test_given_reason_is_kept(told: str | None, kept: str) -> None:
    """Up to the length limit of a reason."""
    entry = an_entry()

    _marked(entry, timedelta(seconds=1), told)

    assert entry.failure is not None
    assert (entry.failure.code, entry.failure.reason) == ("MARKED_FAILED", kept)

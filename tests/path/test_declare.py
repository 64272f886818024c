"""The commit before an attempt."""

import time
from dataclasses import replace
from datetime import timedelta

from carteiro.email.message import make_email
from carteiro.jobs.confirmation import Confirmed
from carteiro.model import ZERO, EventType
from carteiro.path.confirm import VALIDATIONS
from carteiro.path.declare import arrival, doubt, start
from support.working import a_job

HOLD = timedelta(seconds=40)


def a_confirmed() -> Confirmed:
    """An e-mail that passed everything."""
    email = make_email({"to": "ana@example.com", "subject": "s", "text": "t"})
    return Confirmed(email, VALIDATIONS)


def test_attempt_has_lease_provider_and_hold() -> None:
    """The ledger stores who tries, and for how long no other worker may."""
    job = a_job()

    declared = start(
        job, provider="ses", hold=HOLD, arrival=arrival(time.monotonic()), confirmed=None
    )

    assert (declared.lease, declared.provider, declared.hold) == (job.lease, "ses", HOLD)
    assert not declared.open_attempt


def test_received_keeps_its_own_time() -> None:
    """It is the time of the claim, before the validations and the wait for the commit."""
    two_seconds_ago = time.monotonic() - 2

    declared = start(
        a_job(),
        provider="ses",
        hold=HOLD,
        arrival=arrival(two_seconds_ago),
        confirmed=a_confirmed(),
    )

    received, validated = declared.events
    assert (received.type, validated.type) == (EventType.RECEIVED, EventType.VALIDATED)
    assert timedelta(seconds=2) <= received.ago < timedelta(seconds=3)
    assert validated.ago == ZERO


def test_validated_names_the_validations() -> None:
    """In their order."""
    declared = start(
        a_job(),
        provider="ses",
        hold=HOLD,
        arrival=arrival(time.monotonic()),
        confirmed=a_confirmed(),
    )

    assert declared.events[-1].metadata == {"validations": list(VALIDATIONS)}


def test_kind_without_validations_is_only_received() -> None:
    declared = start(a_job(), provider="task", hold=HOLD, arrival=arrival(0.0), confirmed=None)

    assert [event.type for event in declared.events] == [EventType.RECEIVED]


def test_open_attempt_is_recorded_first() -> None:
    """The doubt comes before the attempt that may be a second delivery, in the same commit."""
    job = a_job(open_attempt=True, attempts=3)

    declared = start(job, provider="ses", hold=HOLD, arrival=arrival(0.0), confirmed=a_confirmed())

    assert declared.open_attempt
    assert [event.type for event in declared.events] == ["IN_DOUBT", "RECEIVED", "VALIDATED"]
    assert declared.events[0].metadata["attempt"] == 3


def test_no_doubt_without_an_open_attempt() -> None:
    assert doubt(a_job()) == ()


def test_omitted_copies_are_recorded() -> None:
    """With the attempt that goes without them."""
    confirmed = replace(a_confirmed(), left_out=("bia@example.com",))

    declared = start(a_job(), provider="ses", hold=HOLD, arrival=arrival(0.0), confirmed=confirmed)

    told = declared.events[-1]
    assert told.type is EventType.RECIPIENT_REFUSED
    assert (told.metadata["recipient"], told.metadata["errorCode"]) == (
        "bia@example.com",
        "SUPPRESSED",
    )

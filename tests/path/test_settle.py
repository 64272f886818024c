"""The commit at the end of a job."""

from datetime import timedelta

import pytest

from carteiro.jobs.confirmation import Unfit
from carteiro.model import (
    ZERO,
    Category,
    Dead,
    DeadReason,
    Deferred,
    End,
    EventType,
    Failure,
    NotMade,
    Outcome,
    Refused,
    RefusedWhy,
    Rejected,
    Retry,
    Scope,
    Taken,
    Unknown,
    Verdict,
)
from carteiro.path import settle
from support.builders import a_failure, dead, retry, sent
from support.working import a_job

SECOND = timedelta(seconds=1)
UNFIT = Unfit(
    "TEMPLATE",
    Failure(
        code="INVALID_TEMPLATE",
        category=Category.VALIDATION_ERROR,
        retryable=False,
        scope=Scope.MESSAGE,
        reason="html: has a script",
        rule="validation.template",
    ),
)


def event_types(end: End) -> list[EventType]:
    """The events of an end, types only."""
    return [event.type for event in end.events]


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (Taken("id"), sent()),
        (Rejected(a_failure()), dead()),
        (Deferred(a_failure()), retry()),
        (NotMade(a_failure()), retry(charged=False)),
    ],
)
def test_known_outcome_has_only_its_verdict(outcome: Outcome, verdict: Verdict) -> None:
    """The ledger writes the verdict's own event."""
    job = a_job()

    end = settle.ended(job, verdict, outcome, duration=SECOND, declared=True)

    assert end == End(job.lease, verdict, (), SECOND, revision=job.revision)


@pytest.mark.parametrize("verdict", [retry(charged=False), dead(DeadReason.IN_DOUBT)])
def test_unknown_outcome_is_an_event_and_counted(verdict: Verdict) -> None:
    """With and without a resend: the doubt comes before its consequence."""
    job = a_job(attempts=2)

    end = settle.ended(job, verdict, Unknown(a_failure()), duration=SECOND, declared=True)

    assert end.in_doubt == 1
    assert event_types(end) == [EventType.IN_DOUBT]
    assert end.events[0].metadata == {"attempt": 3, "cause": a_failure().reason}


@pytest.mark.parametrize("outcome", [Taken(""), Unknown(a_failure())])
@pytest.mark.parametrize("declared", [True, False])
def test_undeclared_attempt_is_counted_at_its_end(outcome: Outcome, declared: bool) -> None:
    """A declared one is counted already."""
    end = settle.ended(a_job(), sent(), outcome, duration=SECOND, declared=declared)

    assert end.attempted is not declared


def test_invalid_message_has_its_failed_validation_and_reason() -> None:
    """RECEIVED and VALIDATION_FAILED are written with the end; no attempt was made."""
    end = settle.unfit(a_job(), UNFIT, duration=SECOND)

    assert end.verdict == Dead(DeadReason.VALIDATION_FAILED, UNFIT.failure)
    assert event_types(end) == [EventType.RECEIVED, EventType.VALIDATION_FAILED]
    assert end.events[0].ago == SECOND
    assert end.events[1].metadata == {
        "validation": "TEMPLATE",
        "errorCode": "INVALID_TEMPLATE",
        "errorMessage": "html: has a script",
    }
    assert (end.in_doubt, end.attempted) == (0, False)


def test_invalid_message_with_an_open_attempt_records_the_doubt_first() -> None:
    """It may have been delivered before."""
    end = settle.unfit(a_job(open_attempt=True, attempts=1), UNFIT, duration=SECOND)

    assert event_types(end)[0] is EventType.IN_DOUBT
    assert end.in_doubt == 1


@pytest.mark.parametrize("is_open", [False, True])
def test_job_that_is_not_run_ends_with_its_verdict_and_doubt(is_open: bool) -> None:
    """An open attempt is recorded in the transaction that ends it."""
    job = a_job(open_attempt=is_open, attempts=int(is_open))
    verdict = dead(DeadReason.CRASHES_WORKER, charged=False)

    end = settle.unrun(job, verdict)

    assert end.verdict is verdict
    assert event_types(end) == [EventType.IN_DOUBT] * is_open
    assert (end.in_doubt, end.duration) == (int(is_open), ZERO)


def test_refusal_because_of_a_cancel_becomes_a_retry_that_the_ledger_cancels() -> None:
    """At once and uncharged: the ledger makes it CANCELLED."""
    end = settle.refused(a_job(), Refused(RefusedWhy.CANCELLED))

    assert end is not None
    assert isinstance(end.verdict, Retry)
    assert (end.verdict.after, end.verdict.charged) == (ZERO, False)


def test_refusal_because_of_expiry_is_dead() -> None:
    """Its time was over before the attempt was declared."""
    end = settle.refused(a_job(), Refused(RefusedWhy.EXPIRED))

    assert end is not None
    assert isinstance(end.verdict, Dead)
    assert end.verdict.reason is DeadReason.EXPIRED


@pytest.mark.parametrize(
    "why", [RefusedWhy.LOST, RefusedWhy.HELD, RefusedWhy.NOT_DUE, RefusedWhy.FINISHED]
)
def test_other_refusals_release_the_job(why: RefusedWhy) -> None:
    """Another worker has the message, or it is not due."""
    assert settle.refused(a_job(), Refused(why)) is None

"""Write the verdict under the lease: state, events, queue and dead letter at once.

In: a verdict. Out: what the ledger is to commit. If we crash before the commit, a declared attempt
is in doubt and an undeclared one runs again; after it, everything is in place.
"""

from datetime import timedelta

from carteiro.jobs.confirmation import Unfit
from carteiro.model import (
    ZERO,
    Category,
    Dead,
    DeadReason,
    End,
    Event,
    EventType,
    Failure,
    LeasedJob,
    Outcome,
    Refused,
    RefusedWhy,
    Retry,
    Scope,
    Taken,
    Unknown,
    Verdict,
)
from carteiro.path.declare import doubt, refusal
from carteiro.policy.lifecycle import EXPIRED_UNSENT

_NOT_MADE = Failure(
    code="NOT_MADE",
    category=Category.PERMANENT_ERROR,
    retryable=False,
    scope=Scope.MESSAGE,
    reason="The attempt was not made",
    rule="settle.not_made",
)


def ended(
    job: LeasedJob, verdict: Verdict, outcome: Outcome, *, duration: timedelta, declared: bool
) -> End:
    """The end of an attempt that was made."""
    if isinstance(outcome, Unknown):
        told = {"attempt": job.attempts + 1, "cause": outcome.failure.reason}
        events: tuple[Event, ...] = (Event(EventType.IN_DOUBT, told),)
        return End(job.lease, verdict, events, duration, 1, not declared, job.revision)
    refused = outcome.refused if isinstance(outcome, Taken) else ()
    events = tuple(refusal(address, failure) for address, failure in refused)
    return End(job.lease, verdict, events, duration, 0, not declared, job.revision)


def unfit(job: LeasedJob, found: Unfit, *, duration: timedelta) -> End:
    """The end of a message that must not be sent."""
    told = {
        "validation": found.validation,
        "errorCode": found.failure.code,
        "errorMessage": found.failure.reason,
    }
    events = (
        *doubt(job),
        Event(EventType.RECEIVED, {}, duration),
        Event(EventType.VALIDATION_FAILED, told),
    )
    verdict = Dead(DeadReason.VALIDATION_FAILED, found.failure)
    return End(job.lease, verdict, events, duration, in_doubt=int(job.open_attempt))


def unrun(job: LeasedJob, verdict: Verdict) -> End:
    """The end of a job that its claimer does not run."""
    return End(job.lease, verdict, doubt(job), in_doubt=int(job.open_attempt))


def not_made(job: LeasedJob) -> End:
    """The end of what was to be cancelled or was delivered: of its retry the ledger makes CANCELLED or SENT."""
    return unrun(job, Retry(ZERO, charged=False, failure=_NOT_MADE))


def refused(job: LeasedJob, why: Refused) -> End | None:
    """The end of a job whose attempt the ledger refused; None: it is not ours to end."""
    if why.why in {RefusedWhy.CANCELLED, RefusedWhy.DELIVERED}:
        return not_made(job)
    if why.why is RefusedWhy.EXPIRED:
        return unrun(job, Dead(DeadReason.EXPIRED, EXPIRED_UNSENT))
    return None

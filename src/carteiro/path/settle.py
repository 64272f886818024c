"""Write the verdict under the lease: state, events, queue and dead letter in one transaction.

In: a verdict. Out: the end for the ledger to commit. A crash before the commit leaves a declared attempt
in doubt, and an undeclared one runs again; after it, everything is stored.
"""

from datetime import timedelta

from carteiro import model
from carteiro.jobs.confirmation import Unfit
from carteiro.path.declare import doubt, refusal
from carteiro.policy.lifecycle import EXPIRED_UNSENT

_NOT_MADE = model.Failure(
    code="NOT_MADE",
    category=model.Category.PERMANENT_ERROR,
    retryable=False,
    scope=model.Scope.MESSAGE,
    reason="The attempt was not made",
    rule="settle.not_made",
)


def ended(
    job: model.LeasedJob,
    verdict: model.Verdict,
    outcome: model.Outcome,
    *,
    duration: timedelta,
    declared: bool,
) -> model.End:
    """End a job after its attempt."""
    if isinstance(outcome, model.Unknown):
        told = {"attempt": job.attempts + 1, "cause": outcome.failure.reason}
        events: tuple[model.Event, ...] = (model.Event(model.EventType.IN_DOUBT, told),)
        return model.End(job.lease, verdict, events, duration, 1, not declared, job.revision)
    refused = outcome.refused if isinstance(outcome, model.Taken) else ()
    events = tuple(refusal(address, failure) for address, failure in refused)
    return model.End(job.lease, verdict, events, duration, 0, not declared, job.revision)


def unfit(job: model.LeasedJob, found: Unfit, *, duration: timedelta) -> model.End:
    """End a message that failed a validation."""
    told = {
        "validation": found.validation,
        "errorCode": found.failure.code,
        "errorMessage": found.failure.reason,
    }
    events = (
        *doubt(job),
        model.Event(model.EventType.RECEIVED, {}, duration),
        model.Event(model.EventType.VALIDATION_FAILED, told),
    )
    verdict = model.Dead(model.DeadReason.VALIDATION_FAILED, found.failure)
    return model.End(job.lease, verdict, events, duration, in_doubt=int(job.open_attempt))


def unrun(job: model.LeasedJob, verdict: model.Verdict) -> model.End:
    """End a job that is not run."""
    return model.End(job.lease, verdict, doubt(job), in_doubt=int(job.open_attempt))


def not_made(job: model.LeasedJob) -> model.End:
    """End a job without an attempt: the ledger makes it CANCELLED or SENT."""
    return unrun(job, model.Retry(model.ZERO, charged=False, failure=_NOT_MADE))


def refused(job: model.LeasedJob, why: model.Refused) -> model.End | None:
    """End a job whose attempt the ledger refused; None: another worker has the job."""
    if why.why in {model.RefusedWhy.CANCELLED, model.RefusedWhy.DELIVERED}:
        return not_made(job)
    if why.why is model.RefusedWhy.EXPIRED:
        return unrun(job, model.Dead(model.DeadReason.EXPIRED, EXPIRED_UNSENT))
    return None

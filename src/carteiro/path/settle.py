"""Write the verdict under the lease: state, events, queue and dead letter at once.

In: a verdict. Out: what the ledger is to commit. If we crash before the commit, a declared attempt
is in doubt and an undeclared one runs again; after it, everything is in place.
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
    """The end of an attempt that was made."""
    if isinstance(outcome, model.Unknown):
        told = {"attempt": job.attempts + 1, "cause": outcome.failure.reason}
        events: tuple[model.Event, ...] = (model.Event(model.EventType.IN_DOUBT, told),)
        return model.End(job.lease, verdict, events, duration, 1, not declared, job.revision)
    refused = outcome.refused if isinstance(outcome, model.Taken) else ()
    events = tuple(refusal(address, failure) for address, failure in refused)
    return model.End(job.lease, verdict, events, duration, 0, not declared, job.revision)


def unfit(job: model.LeasedJob, found: Unfit, *, duration: timedelta) -> model.End:
    """The end of a message that must not be sent."""
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
    """The end of a job that its claimer does not run."""
    return model.End(job.lease, verdict, doubt(job), in_doubt=int(job.open_attempt))


def not_made(job: model.LeasedJob) -> model.End:
    """The end of what was to be cancelled or was delivered: of its retry the ledger makes CANCELLED or SENT."""
    return unrun(job, model.Retry(model.ZERO, charged=False, failure=_NOT_MADE))


def refused(job: model.LeasedJob, why: model.Refused) -> model.End | None:
    """The end of a job whose attempt the ledger refused; None: it is not ours to end."""
    if why.why in {model.RefusedWhy.CANCELLED, model.RefusedWhy.DELIVERED}:
        return not_made(job)
    if why.why is model.RefusedWhy.EXPIRED:
        return unrun(job, model.Dead(model.DeadReason.EXPIRED, EXPIRED_UNSENT))
    return None

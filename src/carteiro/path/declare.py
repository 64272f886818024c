"""Declare an attempt before it is made.

In: a confirmed job whose call starts now. Out: the attempt for the ledger to commit. A crash after the commit
leaves exactly this message in doubt; before it, the job was only claimed.
"""

import time
from datetime import timedelta

from carteiro.jobs.confirmation import Confirmed
from carteiro.model import ZERO, Event, EventType, Failure, LeasedJob, Start
from carteiro.policy.suppression import SUPPRESSED


def start(
    job: LeasedJob,
    *,
    provider: str,
    hold: timedelta,
    received: float,
    confirmed: Confirmed | None,
) -> Start:
    """The attempt to declare; ``received`` is the time of the claim, on the monotonic clock."""
    events = [*doubt(job), Event(EventType.RECEIVED, {}, _since(received))]
    if confirmed is not None:
        validations = {"validations": list(confirmed.validations)}
        events.append(Event(EventType.VALIDATED, validations, ZERO))
        events += [refusal(each, SUPPRESSED) for each in confirmed.left_out]
    return Start(job.lease, provider, hold, job.open_attempt, tuple(events))


def doubt(job: LeasedJob) -> tuple[Event, ...]:
    """The event of an attempt that was found open: its result is unknown."""
    if not job.open_attempt:
        return ()
    found = {"attempt": job.attempts, "cause": "an attempt was declared and never settled"}
    return (Event(EventType.IN_DOUBT, found),)


def refusal(address: str, failure: Failure) -> Event:
    """The event of a copy that is left out or was refused; the others are sent, and nothing is repeated for it."""
    told = {
        "recipient": address,
        "errorCode": failure.code,
        "errorCategory": failure.category.value,
        "errorMessage": failure.reason,
        "originalCode": failure.original_code,
    }
    return Event(EventType.RECIPIENT_REFUSED, told)


def _since(moment: float) -> timedelta:
    return timedelta(seconds=time.monotonic() - moment)

"""Declare an attempt before it is made.

In: a confirmed job whose call starts now. Out: the attempt for the ledger to commit. A crash after the commit
leaves exactly this message in doubt; before it, the job was only claimed.
"""

import time
from datetime import timedelta
from functools import cache

from carteiro.jobs.confirmation import Confirmed
from carteiro.model import Event, EventType, Failure, LeasedJob, Start
from carteiro.policy.suppression import SUPPRESSED


def start(
    job: LeasedJob, *, provider: str, hold: timedelta, arrival: Event, confirmed: Confirmed | None
) -> Start:
    """The attempt to declare; see `arrival`."""
    events = (arrival,) if confirmed is None else (arrival, _validated(confirmed.validations))
    if job.open_attempt:
        events = (*doubt(job), *events)
    if confirmed is not None and confirmed.left_out:
        events = (*events, *(refusal(each, SUPPRESSED) for each in confirmed.left_out))
    return Start(job.lease, provider, hold, job.open_attempt, events)


def arrival(received: float) -> Event:
    """The event of jobs whose claim was answered at this time on the monotonic clock, for all of them."""
    return Event(EventType.RECEIVED, {}, timedelta(seconds=time.monotonic() - received))


@cache
def _validated(validations: tuple[str, ...]) -> Event:
    return Event(EventType.VALIDATED, {"validations": list(validations)})


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

"""The end of a ticket: the meaning of an error, and why there is nothing left to try.

Pure: the time comes from the caller.
"""

from errno import errorcode

from carteiro.errors import CarteiroError, DeliveryFailed
from carteiro.model import Deferred, Outcome, Rejected
from carteiro.policy import classify
from carteiro.tickets.consume.handlers import Permanent
from carteiro.tickets.consume.lanes import Work
from carteiro.tickets.consume.ports import LastError
from carteiro.tickets.deaths import Death
from carteiro.tickets.ticket import Reason, Unreadable


class OutOfTime(CarteiroError, TimeoutError):
    """A handler took longer than its type may."""


_STATUSES = range(100, 600)
# The start of asyncio's message when no address of a host takes a connection.
_SEVERAL = "Multiple exceptions: "


def names_of(error: BaseException) -> frozenset[str]:
    """Return the names of an error that settings may use: its classes, its code, its errno, the status of an answer.

    None if it is for good: then it says nothing of others.
    """
    if _is_final(error):
        return frozenset()
    names = {each.__name__ for each in type(error).__mro__} | {error_type(error)}
    if (status := _status_of(error)) is not None:
        names.add(f"HTTP_{status}")
    if isinstance(error, OSError):
        names.add(errorcode.get(error.errno or 0, ""))
        if error.errno is None and classify.message_of(error).startswith(_SEVERAL):
            names.add("ConnectionError")
    return frozenset(names)


def _status_of(error: BaseException) -> int | None:
    """The status that clients of HTTP keep in their errors, each at another place."""
    response = getattr(error, "response", None)
    places = ((response, "status_code"), (error, "status"), (error, "code"))
    found = (getattr(where, name, None) for where, name in places)
    return next((each for each in found if isinstance(each, int) and each in _STATUSES), None)


def outcome_of(error: BaseException) -> Outcome:
    """Classify a handler's error: worth another try, or not."""
    failure = error.failure if isinstance(error, DeliveryFailed) else classify.task_error(error)
    return Rejected(failure) if _is_final(error) else Deferred(failure)


def _is_final(error: BaseException) -> bool:
    """Return True if trying again is pointless."""
    if isinstance(error, DeliveryFailed):
        return not error.failure.retryable
    return isinstance(error, Permanent)


def error_type(error: BaseException) -> str:
    """Return the name that failures are grouped by: of the exception, or the code of one classified already."""
    if isinstance(error, OutOfTime):
        return "Timeout"
    return error.failure.code if isinstance(error, DeliveryFailed) else type(error).__name__


def death_of(work: Work, error: BaseException, *, now_ms: int) -> Death:
    """The end of a ticket that has just failed, and is not tried again."""
    reason: Reason = "permanent_error" if _is_final(error) else "max_retries_exceeded"
    said = classify.message_of(error) or type(error).__name__
    return Death(work.ticket, reason, error_type(error), said, work.failures, now_ms)


def death_at_once(work: Work, *, now_ms: int) -> Death | None:
    """The end of what must not be run, when it comes; None: it may be run."""
    ticket = work.ticket
    if isinstance(ticket, Unreadable):
        return Death(ticket, "undecodable", "Undecodable", ticket.why, 0, now_ms)
    if work.line is None:
        why = f"no handler is there for tickets of type {ticket.type}"
        return Death(ticket, "unknown_task_type", "UnknownTaskType", why, 0, now_ms)
    if work.failures >= work.line.policy.max_attempts:
        why = f"it has failed {work.failures} times; the last error was lost with the worker that saw it"
        return Death(ticket, "max_retries_exceeded", "Lost", why, work.failures, now_ms)
    return None


def death_known(work: Work, last: LastError) -> Death:
    """The end of what was held, as its last owner saw it."""
    return Death(
        work.ticket, last.reason, last.error_type, last.error, last.failures, last.failed_at_ms
    )

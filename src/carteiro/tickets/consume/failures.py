"""The end of a ticket: why there is nothing left to try.

Pure: the time comes from the caller.
"""

from carteiro.tickets.consume.handler_error import HandlerError
from carteiro.tickets.consume.lanes import Work
from carteiro.tickets.consume.ports import LastError
from carteiro.tickets.deaths import Death
from carteiro.tickets.ticket import Reason, Unreadable


def death_of(work: Work, error: HandlerError, *, now_ms: int) -> Death:
    """The end of a ticket that has just failed, and is not tried again."""
    reason: Reason = "permanent_error" if error.is_final else "max_retries_exceeded"
    said = error.text or error.type
    return Death(work.ticket, reason, error.type, said, work.failures, now_ms)


def death_at_once(work: Work, *, now_ms: int) -> Death | None:
    """The end of what must not be run, when it comes; None: it may be run."""
    ticket = work.ticket
    if isinstance(ticket, Unreadable):
        return Death(ticket, "undecodable", "Undecodable", ticket.why, 0, now_ms)
    if work.line is None:
        why = f"there is no handler for tickets of type {ticket.type}"
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

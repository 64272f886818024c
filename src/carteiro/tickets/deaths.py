"""Tickets that nobody tries again: why they died, and what people may do about it."""

from collections.abc import Mapping
from typing import TypeAlias

from carteiro.model import value
from carteiro.tickets.ticket import Reason, TaskType, Ticket, TicketId, Unreadable

Kind: TypeAlias = tuple[TaskType, str]  # and the type of the error

_LOOK = "look into it, then republish it"  # what others put into the topic
_ADVICE: Mapping[str, str] = {
    "max_retries_exceeded": "fix what it failed of, then republish it",
    "permanent_error": "it was refused for good: have it put again as it should be and quarantine this one, "
    "or fix what refused it, then republish it",
    "unknown_task_type": "deploy a handler for its type, then republish it",
    "undecodable": "it is not a ticket: quarantine it, and inform its producer",
}
_BE_QUICK = "; only its place is kept, so be quick: its payload is gone when its own topic drops it"


@value
class Death:
    """The end of a ticket that nobody tries again; ``error`` is cut and scrubbed on the way out."""

    ticket: Ticket | Unreadable
    reason: Reason
    error_type: str
    error: str
    failures: int
    failed_at_ms: int


@value
class Trouble:
    """A ticket that is dead, and nobody has done anything about it; ``error`` is scrubbed already."""

    id: TicketId
    type: TaskType
    reason: str
    error_type: str
    error: str
    is_whole: bool = True

    @property
    def kind(self) -> Kind:
        """Those of one kind are one alert."""
        return self.type, self.error_type


@value
class Paused:
    """A type none of whose tickets are started, except for a trial now and then."""

    type: TaskType
    error_type: str
    error: str


def advice(reason: Reason | str, *, is_whole: bool = True) -> str:
    """Return what to do, as the end of a sentence."""
    return _ADVICE.get(reason, _LOOK) + ("" if is_whole else _BE_QUICK)

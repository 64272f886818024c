"""What waits for people, as far as an alert tells of it."""

from typing import TypeAlias

from carteiro.model import value
from carteiro.tickets.ticket import TaskType, TicketId

Kind: TypeAlias = tuple[TaskType, str]  # and the type of the error


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
    """A type none of whose tickets are started, but for a trial now and then."""

    type: TaskType
    error_type: str
    error: str

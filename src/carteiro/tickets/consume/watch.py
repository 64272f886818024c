"""Reports of a worker: figures for Prometheus, lines for the log, and an alert where nobody else would send one."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from carteiro.tickets import events
from carteiro.tickets.consume.handler_error import HandlerError
from carteiro.tickets.consume.lanes import Work
from carteiro.tickets.consume.metrics import TicketMetrics
from carteiro.tickets.deaths import Death, Paused
from carteiro.tickets.ticket import Reason, TaskType

_SAY_EVERY_S = 30.0  # a client complains of one trouble in several ways, again and again


@dataclass
class Watch:
    """Hears what happens in one worker, and tells it; ``alert`` is called when there is more or less to alert of."""

    metrics: TicketMetrics
    alert: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.monotonic
    waits_for: str = ""  # the worker cannot go on without it
    paused: dict[TaskType, Paused] = field(default_factory=dict)
    _say_again: float = 0.0

    def waits(self, what: str) -> None:
        """It cannot go on without this; "": it goes on."""
        waited_for, self.waits_for = self.waits_for, what
        if waited_for and not what:
            events.tickets_going_on(waited_for)
        elif what and (not waited_for or self.clock() >= self._say_again):
            self._say_again = self.clock() + _SAY_EVERY_S
            events.tickets_waiting(what)

    def failed(self, work: Work, error: HandlerError, after: timedelta | None) -> None:
        """A ticket failed, and is tried again after a while, or never."""
        self.metrics.failed(work.ticket.type)
        if after is not None:
            events.ticket_failed(
                work.ticket,
                failures=work.failures,
                after=after,
                type=error.type,
                why=error.text,
            )

    def buried(self, death: Death, *, is_whole: bool) -> None:
        """The broker has its dead letter; one that is not whole can be redriven only from its own topic."""
        reason: Reason = death.reason if is_whole else "oversized"
        self.metrics.died(death.ticket.type, reason, failures=death.failures)

    def held(self, death: Death) -> None:
        """It is dead, and dead letters are switched off: it stays, with all of its key."""
        events.ticket_held(death)
        self.alert()

    def pause_began(self, type: TaskType, error: HandlerError) -> None:
        """Most tickets of a type cannot reach something: no more are started for a while."""
        self.metrics.pauses(type, paused=True)
        self.paused[type] = Paused(type, error.type, error.text)
        events.ticket_pause_began(type, error_type=error.type, why=error.text)
        self.alert()

    def pause_ended(self, type: TaskType, *, given_up: bool = False) -> None:
        """They succeed again, or the pause was as long as a pause may be."""
        (events.ticket_pause_given_up if given_up else events.ticket_pause_ended)(type)
        self.metrics.pauses(type, paused=False)
        self.paused.pop(type, None)
        self.alert()

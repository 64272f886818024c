"""What is told of the lane: figures for Prometheus, lines for the log, alerts where nobody else would tell."""

from collections.abc import Sequence
from datetime import timedelta

from carteiro.tickets.dead_letter import Death
from carteiro.tickets.lanes import Work
from carteiro.tickets.ports import Part
from carteiro.tickets.publisher import PublishFailed
from carteiro.tickets.ticket import TaskType


class Watch:
    """Silent; whoever wants to know replaces what it wants to hear."""

    def assigned(self, parts: Sequence[Part]) -> None:
        """These partitions are ours."""

    def unassigned(self, parts: Sequence[Part]) -> None:
        """These are not any more."""

    def done(self, work: Work) -> None:
        """A ticket is done."""

    def failed(self, work: Work, error: BaseException, after: timedelta | None) -> None:
        """A ticket failed, and is tried again after a while, or never."""

    def buried(self, work: Work, death: Death) -> None:
        """The broker has its dead letter."""

    def held(self, work: Work, death: Death) -> None:
        """It is dead, and dead letters are switched off: it stays, with all of its key."""

    def publish_failed(self, work: Work, error: PublishFailed, pause_s: float) -> None:
        """The broker did not take a dead letter; it is tried again."""

    def outage_began(self, type: TaskType) -> None:
        """Most tickets of a type fail: no more are started for a while."""

    def outage_ended(self, type: TaskType) -> None:
        """They succeed again."""

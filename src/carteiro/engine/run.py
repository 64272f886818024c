"""One claimed job in a worker, from its claim until it is settled or given back."""

import asyncio

from carteiro.engine.slots import Place, Slots
from carteiro.jobs.confirmation import Confirmed
from carteiro.jobs.kind import Link
from carteiro.model import End, LeasedJob, Outcome
from carteiro.ports.provider import Handover, Parcel


class Run:
    """A job, and the results of the stages of the path so far."""

    __slots__ = (
        "attempt",
        "called_at",
        "confirmed",
        "end",
        "ended_at",
        "handover",
        "has_slot",
        "is_declared",
        "is_handed_on",
        "is_surely_sent",
        "job",
        "kind",
        "link",
        "outcome",
        "parcel",
        "place",
        "pool",
        "received",
        "task",
        "timer",
    )

    def __init__(self, job: LeasedJob, pool: Slots, received: float) -> None:
        self.job = job
        self.pool = pool
        self.kind = pool.kinds[job.kind]
        self.received = received  # on the monotonic clock, as the times below
        self.has_slot = False
        self.place: Place | None = None  # if it must be alone
        self.timer: asyncio.TimerHandle | None = None
        self.link: Link | None = None  # of the chosen provider
        self.confirmed: Confirmed | None = None
        self.is_declared = False  # the hold replaces the lease
        self.handover: Handover | None = None
        self.parcel: Parcel | None = None
        self.attempt = 0  # the number of its call
        self.task: asyncio.Task[None] | None = None  # of its call
        self.called_at = self.ended_at = 0.0
        self.outcome: Outcome | None = None
        self.end: End | None = None
        self.is_surely_sent = False  # its end is the one that can always be stored
        self.is_handed_on = False  # it ends or is given back

    @property
    def is_to_be_extended(self) -> bool:
        """True if its lease must not run out, or its hold, while only a reply is missing."""
        awaits_reply = self.handover is not None and self.handover.awaits_reply
        return not self.is_declared or awaits_reply

    @property
    def may_be_called(self) -> bool:
        """True if its attempt is declared, or its call still runs: it must not be released."""
        is_called = self.task is not None and self.outcome is None and not self.task.done()
        return self.is_declared or is_called

    def take_slot(self) -> None:
        """Take a slot, unless it has one."""
        if not self.has_slot:
            self.has_slot = True
            self.pool.take(1)

    def free_slot(self) -> None:
        """Free its slot, if it has one."""
        if self.has_slot:
            self.has_slot = False
            self.pool.give_back()

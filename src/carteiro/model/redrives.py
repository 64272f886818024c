"""Redrives: jobs that send many dead letters again, a few first."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType

from carteiro.model.basics import MILLISECOND, Cursor, MessageId, TenantId, value
from carteiro.model.dead_letters import DeadFilter, DeadGroup

RedriveId = NewType("RedriveId", str)

MOST_OPEN_REDRIVES = 100  # of tenants; those for all tenants together do not count
MOST_OPEN_REDRIVES_OF_TENANT = 5  # and as many for all tenants together
MOST_AUTOMATIC_REDRIVES = (
    100  # running ones, at most one of a tenant; they do not count among those above
)
MOST_AUTOMATIC_ROUNDS = 10  # of a dead letter
_GROWTH = 4  # of the cool-down, with each of them
_FAR_MS = 2**62
AUTOMATIC = "automatic"  # the requester of an automatic redrive


class RedriveState(StrEnum):
    """State of a redrive."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"  # by itself
    CANCELLED = "cancelled"
    FINISHED = "finished"


ENDED_REDRIVES = frozenset({RedriveState.CANCELLED, RedriveState.FINISHED})


class RedriveResult(StrEnum):
    """Result of one message of a redrive."""

    SENT = "sent"
    FAILED = "failed"
    CANCELLED = "cancelled"  # or deleted
    LATE = "late"  # no end within the time that it is waited for


@value
class Ramp:
    """The pace of a redrive: ``canary`` messages first, then a doubling number a second.

    ``max_failed`` is the share of results that may be failures.
    """

    canary: int = 5
    first_rate: float = 10.0
    max_rate: float = 1000.0
    max_failed: float = 0.2


@value
class Course:
    """The progress of a redrive. ``rate`` 0: the canary; ``run``: the number of starts and resumes.

    A step is the canary, or messages at one rate: those redriven in it, and the results of this run since its start.
    ``is_read``: no matching dead letter is left. ``left_out``: those of ``skipped`` whose
    tenant was paused or disabled.
    """

    redriven: int = 0
    skipped: int = 0
    sent: int = 0
    failed: int = 0
    cancelled: int = 0
    late: int = 0
    run: int = 1
    rate: float = 0.0
    step_at: int = 0  # milliseconds since 1970
    step_redriven: int = 0
    step_sent: int = 0
    step_failed: int = 0
    step_cancelled: int = 0
    step_late: int = 0
    cursor: Cursor | None = None
    is_read: bool = False
    left_out: int = 0

    @property
    def watched(self) -> int:
        """The messages without a result."""
        return self.redriven - self.sent - self.failed - self.cancelled - self.late


@value
class Redrive:
    """A job that redrives the dead letters that match and were there at its start.

    ``tenant`` None: of all tenants. ``reason``: why it was stopped or paused by itself. ``total``: the number that
    matched at the start. ``version`` changes with every change. ``provider`` None: somebody started it; else it is
    automatic, of the dead letters that waited for this provider.
    """

    id: RedriveId
    tenant: TenantId | None
    wanted: DeadFilter
    by: str
    state: RedriveState
    reason: str | None
    ramp: Ramp
    course: Course
    total: int
    started_at: datetime
    changed_at: datetime
    version: int
    provider: str | None = None


@value
class RedrivePlan:
    """The dead letters that a redrive would send now: their number, the largest groups and tenants, a sample.

    ``causes``: the groups in words, by their ids.
    """

    total: int
    groups: Sequence[DeadGroup]
    causes: Mapping[str, str]
    tenants: Sequence[DeadGroup]
    sample: Sequence[MessageId]


@value
class Watched:
    """One message of a redrive without a result: when it was redriven, in which run, and where it is now.

    ``result`` None: it has not ended. ``provider``: of its last attempt.
    """

    message: MessageId
    run: int
    at: int
    result: RedriveResult | None
    provider: str | None


@value
class TooManyRedrives:
    """A redrive was not started: as many are open."""

    most: int
    of_tenant: bool


@value
class AutomaticPlan:
    """The operator's settings of automatic redrives: the first cool-down, and 4 times as long before each other one."""

    is_on: bool = True
    cool_down: timedelta = timedelta(minutes=5)
    rounds: int = 3

    @property
    def gathering(self) -> timedelta:
        """Added to the first cool-down of several: those that died together do not die at the same moment."""
        return min(timedelta(minutes=1), self.cool_down / 5)

    def cool_down_after(self, rounds: int) -> timedelta:
        """The time that a dead letter waits after this number of automatic rounds."""
        growth: int = _GROWTH**rounds
        return self.cool_down * growth

    def latest_starts(self, now_ms: int) -> list[tuple[int, int]]:
        """The latest start of a cool-down that is over now, by the number of rounds."""
        return [
            (done, now_ms - self.cool_down_after(done) // MILLISECOND)
            for done in range(self.rounds)
        ]

    def starts_of_all(self, now_ms: int) -> list[tuple[int, int]]:
        """The same, and any start for those that have no round left."""
        over = [(done, _FAR_MS) for done in range(self.rounds, MOST_AUTOMATIC_ROUNDS + 1)]
        return [*self.latest_starts(now_ms), *over]

"""Redrives: jobs that send many dead letters again, a few first."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NewType

from carteiro.model.basics import Cursor, MessageId, TenantId, value
from carteiro.model.dead_letters import DeadFilter, DeadGroup

RedriveId = NewType("RedriveId", str)

MOST_OPEN_REDRIVES = 100  # of tenants; those for all tenants together do not count
MOST_OPEN_REDRIVES_OF_TENANT = 5  # and as many for all tenants together


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
    matched at the start. ``version`` changes with every change.
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

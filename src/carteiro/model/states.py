"""States of a message, the allowed transitions, and the events of its timeline."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from carteiro.model.basics import ZERO, Metadata, value


class State(StrEnum):
    """State of a message. VALIDATION_FAILED is only passed through; no message stays in it."""

    ENQUEUED = "ENQUEUED"
    RECEIVED = "RECEIVED"
    VALIDATED = "VALIDATED"
    VALIDATION_FAILED = "VALIDATION_FAILED"
    SENT_ATTEMPT = "SENT_ATTEMPT"
    RETRY_SCHEDULED = "RETRY_SCHEDULED"
    SENT = "SENT"
    FAILED = "FAILED"
    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"


TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.ENQUEUED: frozenset(
        {State.RECEIVED, State.EXPIRED, State.CANCELLED, State.FAILED, State.SENT}
    ),
    State.RECEIVED: frozenset(
        {
            State.VALIDATED,
            State.VALIDATION_FAILED,
            State.EXPIRED,
            State.CANCELLED,
            State.SENT_ATTEMPT,
        }
    ),
    State.VALIDATED: frozenset({State.SENT_ATTEMPT, State.EXPIRED, State.CANCELLED}),
    State.VALIDATION_FAILED: frozenset({State.FAILED}),
    State.SENT_ATTEMPT: frozenset(
        {
            State.SENT,
            State.FAILED,
            State.RETRY_SCHEDULED,
            State.CANCELLED,
            State.EXPIRED,
            State.RECEIVED,
        }
    ),
    State.RETRY_SCHEDULED: frozenset(
        {State.RECEIVED, State.EXPIRED, State.CANCELLED, State.FAILED, State.SENT}
    ),
    State.FAILED: frozenset({State.ENQUEUED, State.SENT}),
    State.EXPIRED: frozenset({State.ENQUEUED, State.SENT}),
    State.SENT: frozenset(),
    State.CANCELLED: frozenset(),
}
FINISHED = frozenset({State.SENT, State.FAILED, State.EXPIRED, State.CANCELLED})
DEAD = frozenset({State.FAILED, State.EXPIRED})


class EventType(StrEnum):
    """Types of the events in a timeline: every state, and further events."""

    ENQUEUED = State.ENQUEUED.value
    RECEIVED = State.RECEIVED.value
    VALIDATED = State.VALIDATED.value
    VALIDATION_FAILED = State.VALIDATION_FAILED.value
    SENT_ATTEMPT = State.SENT_ATTEMPT.value
    RETRY_SCHEDULED = State.RETRY_SCHEDULED.value
    SENT = State.SENT.value
    FAILED = State.FAILED.value
    EXPIRED = State.EXPIRED.value
    CANCELLED = State.CANCELLED.value
    IN_DOUBT = "IN_DOUBT"
    LATE_RESULT = "LATE_RESULT"
    CANCEL_REQUESTED = "CANCEL_REQUESTED"
    RECIPIENT_REFUSED = "RECIPIENT_REFUSED"
    DELAYED = "DELAYED"
    DELIVERED = "DELIVERED"
    OPENED = "OPENED"
    CLICKED = "CLICKED"
    BOUNCED = "BOUNCED"
    COMPLAINED = "COMPLAINED"


@value
class Event:
    """One line of a timeline; ``ago`` is its age at the commit, and the store adds its own time."""

    type: EventType
    metadata: Metadata
    ago: timedelta = ZERO


@value
class TimelineEvent:
    """An event as the store returns it."""

    type: EventType
    metadata: Metadata
    at: datetime

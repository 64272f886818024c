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


def _states(names: str) -> frozenset[State]:
    return frozenset(map(State, names.split()))


TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.ENQUEUED: _states("RECEIVED EXPIRED CANCELLED FAILED SENT"),
    State.RECEIVED: _states("VALIDATED VALIDATION_FAILED EXPIRED CANCELLED SENT_ATTEMPT"),
    State.VALIDATED: _states("SENT_ATTEMPT EXPIRED CANCELLED"),
    State.VALIDATION_FAILED: _states("FAILED"),
    State.SENT_ATTEMPT: _states("SENT FAILED RETRY_SCHEDULED CANCELLED EXPIRED RECEIVED"),
    State.RETRY_SCHEDULED: _states("RECEIVED EXPIRED CANCELLED FAILED SENT"),
    State.FAILED: _states("ENQUEUED SENT"),
    State.EXPIRED: _states("ENQUEUED SENT"),
    State.SENT: _states(""),
    State.CANCELLED: _states(""),
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
    UNSUBSCRIBED = "UNSUBSCRIBED"


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

"""Feedback of providers, with every field that does not matter filled in."""

from datetime import UTC, datetime
from typing import Any

from carteiro.model import BounceKind, EventType, Feedback, MessageId

AT = datetime.fromtimestamp(1_800_000_000, UTC)  # the start of the clock of a store under test


def a_feedback(
    message: MessageId, type: EventType = EventType.DELIVERED, **changes: Any
) -> Feedback:
    """Feedback on a message; ``changes`` are fields of `Feedback`."""
    fields: dict[str, Any] = {
        "at": AT,
        "provider": "sandbox",  # as attempts under test are declared with
        "provider_id": "ses-1",
        "event_id": f"event-{type.value}",
        "recipients": ("ana@example.com",),
    }
    return Feedback(message, type, **(fields | changes))


def a_bounce(message: MessageId, kind: BounceKind = BounceKind.HARD, **changes: Any) -> Feedback:
    """A bounce of a message."""
    return a_feedback(message, EventType.BOUNCED, bounce=kind, **changes)

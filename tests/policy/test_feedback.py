"""The delivery status of a mail, from its timeline."""

from datetime import UTC, datetime
from typing import Any

import pytest

from carteiro.model import EventType, TimelineEvent
from carteiro.policy.feedback import standing

AT = datetime(2027, 1, 15, 8, 0, 1, tzinfo=UTC)


def _event(type: EventType, **metadata: Any) -> TimelineEvent:
    return TimelineEvent(type, metadata, AT)


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        ([], None),
        ([_event(EventType.SENT)], None),
        ([_event(EventType.DELIVERED), _event(EventType.DELAYED)], EventType.DELIVERED),
        (
            [_event(EventType.DELIVERED), _event(EventType.BOUNCED, bounce="soft")],
            EventType.DELIVERED,
        ),
        ([_event(EventType.BOUNCED, bounce="hard"), _event(EventType.CLICKED)], EventType.BOUNCED),
        ([_event(EventType.BOUNCED), _event(EventType.DELIVERED)], EventType.BOUNCED),
        ([_event(EventType.COMPLAINED), _event(EventType.BOUNCED)], EventType.COMPLAINED),
        ([_event(EventType.BOUNCED, revision=1), _event(EventType.OPENED)], EventType.OPENED),
        ([_event(EventType.DELIVERED), _event(EventType.UNSUBSCRIBED)], EventType.DELIVERED),
    ],
)
def test_most_specific_feedback_is_shown(
    events: list[TimelineEvent], shown: EventType | None
) -> None:
    """In either order; feedback of an earlier revision is ignored."""
    assert standing(events) is shown
    assert standing(reversed(events)) is shown

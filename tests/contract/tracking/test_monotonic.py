"""Tracking, monotonic: the same reports in any order end the same."""

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import BounceKind, EventType, Feedback, MessageId, State, SuppressionReason
from carteiro.policy.feedback import standing
from carteiro.ports import Backend
from support.builders import ACME, a_message, retry, sent, tenants_named
from support.clock import StoreClock
from support.feedback import AT, a_feedback
from support.set_ups import PROPERTY, SetUp
from support.steps import accepted, attempted, claimed_and_declared, settled

_BESIDE = frozenset({EventType.LATE_RESULT})


def _all_told(message: MessageId) -> list[Feedback]:
    """A mail that was delayed, delivered, opened, clicked, bounced softly three times, and complained of."""
    plain = [
        a_feedback(message, type, at=AT)
        for type in (
            EventType.SENT,
            EventType.DELAYED,
            EventType.DELIVERED,
            EventType.OPENED,
            EventType.CLICKED,
            EventType.COMPLAINED,
        )
    ]
    soft = [
        a_feedback(
            message,
            EventType.BOUNCED,
            event_id=f"bounce-{day}",
            bounce=BounceKind.SOFT,
            at=AT - timedelta(days=day),
        )
        for day in range(3)
    ]
    return plain + soft


async def _ends(backend: Backend, message: MessageId) -> tuple[Any, ...]:
    row = await backend.reading.message(message)
    assert row is not None
    events = await backend.reading.events(message)
    told = sorted(
        (event.type.value, str(event.metadata.get("eventId")), event.at)
        for event in events
        if "eventId" in event.metadata
    )
    beside = sorted(event.type.value for event in events if event.type in _BESIDE)
    listed = (await backend.suppressions.list(ACME)).rows
    suppressed = sorted((each.reason, each.created_at, each.is_active) for each in listed)
    return row.state, row.provider_id, told, beside, standing(events), suppressed


async def _told(set_up: SetUp, order: list[int], groups: int) -> tuple[Any, ...]:
    clock = StoreClock()
    async with set_up.opened(clock) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        [message] = await accepted(backend.store, a_message())
        job = await claimed_and_declared(backend.store)
        await settled(backend.store, job, retry(timedelta(minutes=5), charged=False), in_doubt=1)
        everything = _all_told(message)
        told = [everything[each] for each in order]
        for start in range(0, len(told), groups):
            await backend.tracking.note(told[start : start + groups])
        return await _ends(backend, message)


_ALL = list(range(9))
_orders = st.tuples(st.permutations(_ALL), st.lists(st.sampled_from(_ALL), max_size=6)).map(
    lambda drawn: [*drawn[0], *drawn[1]]
)


@PROPERTY
@given(order=_orders, groups=st.integers(1, 5))
async def test_every_order_and_repetition_ends_the_same(
    set_up: SetUp, order: list[int], groups: int
) -> None:
    """The state, the timeline, the delivery status, and the suppressions."""
    state, provider_id, told, beside, got_to, suppressed = await _told(set_up, order, groups)

    assert (state, provider_id, got_to) == (State.SENT, "ses-1", EventType.COMPLAINED)
    assert beside == ["LATE_RESULT"]
    assert [each[0] for each in told] == sorted(
        ["BOUNCED"] * 3 + ["CLICKED", "COMPLAINED", "DELAYED", "DELIVERED", "OPENED"]
    )
    assert suppressed == [
        (SuppressionReason.COMPLAINT, AT, True),
        (SuppressionReason.SOFT_BOUNCE, AT - timedelta(days=2), True),
    ]


async def test_late_report_is_not_shown(backend: Backend) -> None:
    """A delay after the delivery, a delivery after the bounce: on the timeline, and no more."""
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, sent())
    shown = []

    for type in (EventType.DELAYED, EventType.DELIVERED, EventType.BOUNCED):
        await backend.tracking.note([a_feedback(message, type)])
        late = a_feedback(message, EventType.DELAYED, event_id=f"late-{type}")
        await backend.tracking.note([late, a_feedback(message, EventType.SENT)])
        shown.append(standing(await backend.reading.events(message)))

    assert shown == [EventType.DELAYED, EventType.DELIVERED, EventType.BOUNCED]
    row = await backend.reading.message(message)
    assert row is not None
    assert row.state is State.SENT

"""Tracking, idempotent: a repeated report changes nothing, from any source."""

import asyncio

import pytest

from carteiro.model import EventType, MessageId, NoteAnswer, State, TimelineEvent
from carteiro.policy.lifecycle import MOST_GLANCES
from carteiro.ports import Backend
from support.builders import a_message, an_id, sent
from support.clock import StoreClock
from support.feedback import a_bounce, a_feedback
from support.steps import accepted, attempted, event_types, everything_about

TYPES = [
    EventType.DELAYED,
    EventType.DELIVERED,
    EventType.OPENED,
    EventType.CLICKED,
    EventType.BOUNCED,
    EventType.COMPLAINED,
]


async def _sent(backend: Backend) -> MessageId:
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, sent())
    return message


@pytest.mark.parametrize("type", TYPES)
async def test_event_is_on_the_timeline_once(
    backend: Backend, clock: StoreClock, type: EventType
) -> None:
    """With all its fields; a repetition changes nothing."""
    message = await _sent(backend)
    told = a_feedback(message, type, at=clock.at(), detail="smtp; 250 ok")

    first = await backend.tracking.note([told])
    before = await everything_about(backend, message)
    again = await backend.tracking.note([told, told])

    metadata = {
        "provider": "sandbox",
        "eventId": told.event_id,
        "recipients": ["ana@example.com"],
        "detail": "smtp; 250 ok",
    }
    assert (first, again) == ([NoteAnswer.NOTED], [NoteAnswer.KNOWN] * 2)
    assert await everything_about(backend, message) == before
    last = (await backend.reading.events(message))[-1]
    assert last == TimelineEvent(type, metadata, clock.at())


async def test_sent_event_adds_nothing_to_a_sent_message(backend: Backend) -> None:
    """The state says it already."""
    message = await _sent(backend)
    before = await everything_about(backend, message)

    answers = await backend.tracking.note([a_feedback(message, EventType.SENT)])

    assert answers == [NoteAnswer.KNOWN]
    assert await everything_about(backend, message) == before


async def test_repeated_event_in_one_list_is_recorded_once(backend: Backend) -> None:
    """As if they had come separately."""
    message = await _sent(backend)

    answers = await backend.tracking.note([a_feedback(message), a_feedback(message)])

    assert answers == [NoteAnswer.NOTED, NoteAnswer.KNOWN]
    assert (await event_types(backend, message)).count(EventType.DELIVERED) == 1


async def test_concurrent_events_are_recorded_once(backend: Backend) -> None:
    message = await _sent(backend)
    told = a_bounce(message)

    answers = await asyncio.gather(*[backend.tracking.note([told]) for _ in range(5)])

    assert sorted(answer for [answer] in answers) == [*[NoteAnswer.KNOWN] * 4, NoteAnswer.NOTED]
    assert (await event_types(backend, message)).count(EventType.BOUNCED) == 1


async def test_unknown_message_changes_nothing(backend: Backend) -> None:
    """No such message, or one without an attempt: then it is another store's."""
    [waiting] = await accepted(backend.store, a_message())

    answers = await backend.tracking.note([a_feedback(an_id()), a_bounce(waiting)])

    assert answers == [NoteAnswer.UNKNOWN] * 2
    assert await event_types(backend, waiting) == [EventType.ENQUEUED]
    row = await backend.reading.message(waiting)
    assert row is not None
    assert row.state is State.ENQUEUED


async def test_opens_do_not_fill_a_timeline(backend: Backend) -> None:
    """A machine may open it without end; important events are still recorded."""
    message = await _sent(backend)
    opens = [
        a_feedback(message, EventType.OPENED, event_id=f"open-{each}")
        for each in range(MOST_GLANCES + 2)
    ]

    answers = await backend.tracking.note([*opens, a_bounce(message)])

    assert answers[-3:] == [NoteAnswer.KNOWN, NoteAnswer.KNOWN, NoteAnswer.NOTED]
    assert (await event_types(backend, message)).count(EventType.OPENED) == MOST_GLANCES

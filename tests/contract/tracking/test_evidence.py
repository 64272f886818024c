"""Tracking, evidence: a message that a provider has is SENT, after any doubt about its attempt."""

from datetime import timedelta

import pytest

from carteiro.model import (
    CancelAnswer,
    DeadReason,
    EventType,
    MessageId,
    NoteAnswer,
    Revision,
    State,
    StoredMessage,
)
from carteiro.ports import Backend
from support.builders import ACME, a_message, dead, retry
from support.clock import StoreClock
from support.feedback import a_bounce, a_feedback
from support.steps import (
    HOLD,
    accepted,
    claimed_and_declared,
    claimed_ids,
    event_types,
    settled,
)

TYPES = [EventType.SENT, EventType.DELIVERED, EventType.BOUNCED, EventType.DELAYED]


async def _row(backend: Backend, message: MessageId) -> StoredMessage:
    row = await backend.reading.message(message)
    assert row is not None
    return row


@pytest.mark.parametrize("type", TYPES)
async def test_unsettled_attempt_was_made(
    backend: Backend, clock: StoreClock, type: EventType
) -> None:
    """Its worker died; the provider has it. It is not sent again."""
    [message] = await accepted(backend.store, a_message())
    await claimed_and_declared(backend.store)
    clock.advance(2 * HOLD)

    answers = await backend.tracking.note([a_feedback(message, type, revision=1)])

    row = await _row(backend, message)
    assert answers == [NoteAnswer.RESOLVED]
    assert (row.state, row.provider, row.provider_id) == (State.SENT, "sandbox", "ses-1")
    types = await event_types(backend, message)
    assert types[-2:] == (
        [EventType.LATE_RESULT, EventType.SENT]
        if type is EventType.SENT
        else [EventType.SENT, type]
    )
    assert await claimed_ids(backend.store) == []
    assert await backend.reading.place(message) is None


@pytest.mark.parametrize("type", TYPES)
async def test_message_that_waits_after_a_doubt_is_sent(backend: Backend, type: EventType) -> None:
    """It would have been sent a second time."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)
    await settled(backend.store, job, retry(timedelta(minutes=5), charged=False), in_doubt=1)

    answers = await backend.tracking.note([a_feedback(message, type)])

    assert answers == [NoteAnswer.RESOLVED]
    assert (await _row(backend, message)).state is State.SENT
    assert await backend.reading.place(message) is None


@pytest.mark.parametrize("type", TYPES)
async def test_message_that_died_in_doubt_is_sent(backend: Backend, type: EventType) -> None:
    """It is not a dead letter any more."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)
    await settled(backend.store, job, dead(DeadReason.IN_DOUBT, charged=False), in_doubt=1)
    was_dead = await backend.dead_letters.show(message) is not None

    answers = await backend.tracking.note([a_feedback(message, type)])

    assert was_dead
    assert answers == [NoteAnswer.RESOLVED]
    assert (await _row(backend, message)).state is State.SENT
    assert await backend.dead_letters.show(message) is None


@pytest.mark.parametrize("type", TYPES)
async def test_evidence_is_kept_while_another_attempt_is_live(
    backend: Backend, clock: StoreClock, type: EventType
) -> None:
    """That attempt is not changed, and ends as SENT with any verdict."""
    [message] = await accepted(backend.store, a_message())
    await claimed_and_declared(backend.store)
    clock.advance(2 * HOLD)
    job = await claimed_and_declared(backend.store)

    told = a_feedback(message, type)
    answers = await backend.tracking.note([told, told])
    during = (await _row(backend, message)).state
    await settled(backend.store, job, dead())

    assert answers == [NoteAnswer.NOTED, NoteAnswer.KNOWN]
    assert during is State.SENT_ATTEMPT
    row = await _row(backend, message)
    assert (row.state, row.provider_id) == (State.SENT, "ses-1")
    assert await backend.dead_letters.show(message) is None


async def test_cancelled_message_stays_cancelled(backend: Backend) -> None:
    """The timeline shows that it was sent all the same."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)
    await settled(backend.store, job, retry(timedelta(minutes=5)))
    cancelled = await backend.store.cancel([message], tenant=ACME)

    told = a_feedback(message)
    answers = await backend.tracking.note([told, told])

    assert cancelled == [CancelAnswer.CANCELLED]
    assert answers == [NoteAnswer.NOTED, NoteAnswer.KNOWN]
    assert (await _row(backend, message)).state is State.CANCELLED
    types = await event_types(backend, message)
    assert types[-2:] == [EventType.LATE_RESULT, EventType.DELIVERED]


async def test_earlier_revision_proves_nothing(backend: Backend) -> None:
    """The edited content has not been sent; its bounce is recorded with its revision."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)
    await settled(backend.store, job, dead(DeadReason.IN_DOUBT), in_doubt=1)
    edited = Revision('{"html":"<p>Boa tarde</p>"}', "ana@example.com", "Boa tarde")
    await backend.dead_letters.redrive([message], by="ana", revision=edited)

    told = [a_feedback(message, EventType.SENT, revision=1), a_bounce(message, revision=1)]
    answers = await backend.tracking.note(told)

    assert answers == [NoteAnswer.KNOWN, NoteAnswer.NOTED]
    assert (await _row(backend, message)).state is State.ENQUEUED
    last = (await backend.reading.events(message))[-1]
    assert (last.type, last.metadata["revision"]) == (EventType.BOUNCED, 1)
    assert await claimed_ids(backend.store) == [message]

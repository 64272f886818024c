"""Store, cancellable: cancel ends waiting messages, marks those in flight, and changes no other tenant's messages."""

from datetime import timedelta

import pytest

from carteiro.model import (
    CancelAnswer,
    EventType,
    Late,
    MessageId,
    Refused,
    RefusedWhy,
    Settled,
    State,
    Verdict,
)
from carteiro.ports import Backend
from support.builders import ACME, BRASA, TASK, a_message, a_task, dead, retry, sent
from support.clock import StoreClock, past
from support.steps import (
    HOLD,
    LEASE,
    accepted,
    attempted,
    claimed_alone,
    claimed_and_declared,
    claimed_ids,
    declare,
    event_types,
    everything_about,
    settled,
)


async def _cancel(backend: Backend, message: MessageId) -> CancelAnswer:
    [answer] = await backend.store.cancel([message], tenant=ACME)
    return answer


async def _state(backend: Backend, message: MessageId) -> State:
    row = await backend.reading.message(message)
    assert row is not None
    return row.state


async def test_waiting_message_is_cancelled(backend: Backend, clock: StoreClock) -> None:
    """Ready, scheduled or waiting for a retry: it ends, its event is written, and it is never claimed."""
    retried = await accepted(backend.store, a_message())
    await attempted(backend.store, retry(timedelta(minutes=1)))
    ready = await accepted(backend.store, a_message())
    scheduled = await accepted(backend.store, a_message(due=clock.at(timedelta(minutes=1))))
    ids = [*retried, *ready, *scheduled]

    answers = await backend.store.cancel(ids, tenant=ACME)

    clock.advance(timedelta(minutes=1))
    assert answers == [CancelAnswer.CANCELLED] * 3
    assert await claimed_ids(backend.store) == []
    for each in ids:
        row = await backend.reading.message(each)
        assert row is not None
        assert row.state is State.CANCELLED
        assert row.finished_at == clock.at(-timedelta(minutes=1))
        assert (await event_types(backend, each))[-1] is EventType.CANCELLED


async def test_claimed_and_undeclared_message_is_cancelled(backend: Backend) -> None:
    """Nothing was handed over yet: the claimer's declare is refused, its settle comes late."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_alone(backend.store)

    answer = await _cancel(backend, message)

    assert answer is CancelAnswer.CANCELLED
    assert await declare(backend.store, job) == Refused(RefusedWhy.FINISHED)
    assert await settled(backend.store, job, dead()) == Late(State.CANCELLED)


@pytest.mark.parametrize(
    ("verdict", "state"),
    [(sent(), State.SENT), (retry(), State.CANCELLED), (dead(), State.FAILED)],
    ids=["sent", "retry", "dead"],
)
async def test_send_in_flight_is_marked(
    backend: Backend, clock: StoreClock, verdict: Verdict, state: State
) -> None:
    """A retry then becomes CANCELLED; a success stays SENT, a failure FAILED."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)

    answer = await _cancel(backend, message)

    row = await backend.reading.message(message)
    assert answer is CancelAnswer.REQUESTED
    assert row is not None
    assert (row.state, row.cancel_requested_at) == (State.SENT_ATTEMPT, clock.at())
    assert (await event_types(backend, message))[-1] is EventType.CANCEL_REQUESTED
    assert await settled(backend.store, job, verdict) == Settled(state)
    assert await claimed_ids(backend.store) == []


async def test_repeated_cancel_writes_nothing(backend: Backend, clock: StoreClock) -> None:
    """The request is marked once."""
    [message] = await accepted(backend.store, a_message())
    await claimed_and_declared(backend.store)
    await _cancel(backend, message)
    before = await everything_about(backend, message)

    clock.advance(timedelta(seconds=1))

    assert await _cancel(backend, message) is CancelAnswer.REQUESTED
    assert await everything_about(backend, message) == before


async def test_message_in_doubt_is_marked_and_not_sent_again(
    backend: Backend, clock: StoreClock
) -> None:
    """It may have been delivered, so it is not simply CANCELLED; but no new attempt is begun."""
    [message] = await accepted(backend.store, a_message())
    await claimed_and_declared(backend.store)
    clock.advance(past(HOLD))

    answer = await _cancel(backend, message)
    job = await claimed_alone(backend.store)

    assert answer is CancelAnswer.REQUESTED
    assert await declare(backend.store, job) == Refused(RefusedWhy.CANCELLED)
    assert await settled(backend.store, job, retry(), in_doubt=1) == Settled(State.CANCELLED)


async def test_running_task_is_marked(backend: Backend, clock: StoreClock) -> None:
    """For kinds that do not declare, a live lease is an attempt; an expired lease is not."""
    [message] = await accepted(backend.store, a_task())
    await claimed_alone(backend.store, kinds=[TASK])

    running = await _cancel(backend, message)
    clock.advance(LEASE)
    vanished = await _cancel(backend, message)

    assert running is CancelAnswer.REQUESTED
    assert vanished is CancelAnswer.CANCELLED
    assert await claimed_ids(backend.store, kinds=[TASK]) == []


async def test_cancel_of_a_repeated_task_is_kept(backend: Backend, clock: StoreClock) -> None:
    """A task that failed before and runs again is marked like one on its first run."""
    [message] = await accepted(backend.store, a_task())
    first = await claimed_alone(backend.store, kinds=[TASK])
    await settled(backend.store, first, retry(timedelta(minutes=1)), attempted=True)
    clock.advance(timedelta(minutes=1))
    again = await claimed_alone(backend.store, kinds=[TASK])

    answer = await _cancel(backend, message)

    assert answer is CancelAnswer.REQUESTED
    verdict = retry(timedelta(minutes=1))
    assert await settled(backend.store, again, verdict, attempted=True) == Settled(State.CANCELLED)


async def test_running_task_that_fails_becomes_cancelled(backend: Backend) -> None:
    """The cancel replaces its retry."""
    [message] = await accepted(backend.store, a_task())
    job = await claimed_alone(backend.store, kinds=[TASK])
    await _cancel(backend, message)

    answer = await settled(backend.store, job, retry(), attempted=True)

    assert answer == Settled(State.CANCELLED)


@pytest.mark.parametrize("verdict", [sent(), dead()], ids=["sent", "dead"])
async def test_finished_message_is_not_changed(backend: Backend, verdict: Verdict) -> None:
    """It is not cancelled any more, and nothing is written."""
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, verdict)
    before = await everything_about(backend, message)

    assert await _cancel(backend, message) is CancelAnswer.FINISHED
    assert await everything_about(backend, message) == before


async def test_second_cancel_finds_it_finished(backend: Backend) -> None:
    """CANCELLED is an end like any other, within a batch too."""
    [message] = await accepted(backend.store, a_message())

    answers = await backend.store.cancel([message, message], tenant=ACME)

    assert answers == [CancelAnswer.CANCELLED, CancelAnswer.FINISHED]


async def test_message_of_another_tenant_is_not_found(backend: Backend) -> None:
    """Neither an unknown id nor another's reveals or changes anything."""
    [mine, theirs] = await accepted(backend.store, a_message(), a_message(BRASA))
    before = await everything_about(backend, theirs)

    answers = await backend.store.cancel([theirs, MessageId("unknown"), mine], tenant=ACME)

    assert answers == [CancelAnswer.NOT_FOUND, CancelAnswer.NOT_FOUND, CancelAnswer.CANCELLED]
    assert await everything_about(backend, theirs) == before
    assert await claimed_ids(backend.store) == [theirs]


async def test_redriven_message_that_is_cancelled_has_no_dead_letter(
    backend: Backend,
) -> None:
    """Cancelled removes the entry."""
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, dead())
    await backend.dead_letters.redrive([message], by="ana")

    assert await _cancel(backend, message) is CancelAnswer.CANCELLED
    assert await backend.dead_letters.show(message) is None
    assert await _state(backend, message) is State.CANCELLED

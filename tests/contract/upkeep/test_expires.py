"""Upkeep, expires: a message not sent by its time becomes a dead letter; a running or open attempt is skipped."""

from carteiro.model import DeadReason, EventType, MessageId, State
from carteiro.ports import Backend
from support.builders import ACME, TASK, TTL, a_message, a_task, a_tenant, messages, retry, sent
from support.clock import MILLISECOND, StoreClock, past
from support.steps import (
    HOLD,
    LEASE,
    accepted,
    attempted,
    claimed,
    claimed_alone,
    claimed_and_declared,
    claimed_ids,
    event_types,
    settled,
)


async def _state(backend: Backend, message: MessageId) -> State:
    row = await backend.reading.message(message)
    assert row is not None
    return row.state


async def test_overdue_message_expires(backend: Backend, clock: StoreClock) -> None:
    """At its last millisecond and not before: EXPIRED, a dead letter, and no job left."""
    [message] = await accepted(backend.store, a_message())

    clock.advance(TTL - MILLISECOND)
    too_early = await backend.upkeep.expire(limit=10)
    clock.advance(MILLISECOND)
    in_time = await backend.upkeep.expire(limit=10)

    letter = await backend.dead_letters.show(message)
    assert (too_early, in_time) == (0, 1)
    assert await _state(backend, message) is State.EXPIRED
    assert (await event_types(backend, message))[-1] is EventType.EXPIRED
    assert letter is not None
    assert letter.reason is DeadReason.EXPIRED
    assert await claimed_ids(backend.store) == []


async def test_ttl_counts_from_the_due_time(backend: Backend, clock: StoreClock) -> None:
    """A message scheduled for tomorrow has its whole ttl tomorrow."""
    await accepted(backend.store, a_message(due=clock.at(TTL)))

    clock.advance(2 * TTL - MILLISECOND)
    too_early = await backend.upkeep.expire(limit=10)
    clock.advance(MILLISECOND)

    assert too_early == 0
    assert await backend.upkeep.expire(limit=10) == 1


async def test_message_that_waits_for_a_retry_expires(backend: Backend, clock: StoreClock) -> None:
    """A parked job expires as a ready one does."""
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, retry(TTL - MILLISECOND))
    clock.advance(TTL)

    assert await backend.upkeep.expire(limit=10) == 1
    assert await _state(backend, message) is State.EXPIRED


async def test_declared_attempt_does_not_expire(backend: Backend, clock: StoreClock) -> None:
    """In flight or in doubt: its claimer decides, at any age."""
    [message] = await accepted(backend.store, a_message())
    clock.advance(TTL - MILLISECOND)
    await claimed_and_declared(backend.store)
    clock.advance(MILLISECOND)

    in_flight = await backend.upkeep.expire(limit=10)
    clock.advance(past(HOLD))
    in_doubt = await backend.upkeep.expire(limit=10)

    assert (in_flight, in_doubt) == (0, 0)
    assert await _state(backend, message) is State.SENT_ATTEMPT


async def test_running_task_does_not_expire(backend: Backend, clock: StoreClock) -> None:
    """For kinds that do not declare, a live lease is a running attempt; an expired one is not."""
    await accepted(backend.store, a_task())
    clock.advance(TTL - MILLISECOND)
    await claimed_alone(backend.store, kinds=[TASK])
    clock.advance(MILLISECOND)

    running = await backend.upkeep.expire(limit=10)
    clock.advance(LEASE)
    vanished = await backend.upkeep.expire(limit=10)

    assert (running, vanished) == (0, 1)


async def test_claimed_message_without_an_attempt_expires_and_frees_its_slot(
    backend: Backend, clock: StoreClock
) -> None:
    """Nothing was handed over: the message expires despite its claim, and the tenant may have another."""
    await backend.tenants.define([a_tenant(cap=1)])
    [old] = await accepted(backend.store, a_message())
    clock.advance(TTL - MILLISECOND)
    [new] = await accepted(backend.store, a_message(priority=9))
    assert await claimed_ids(backend.store) == [old]
    clock.advance(MILLISECOND)

    assert await backend.upkeep.expire(limit=10) == 1
    assert await claimed_ids(backend.store) == [new]


async def test_message_to_be_cancelled_is_cancelled(backend: Backend, clock: StoreClock) -> None:
    """A request that found the task running counts when the worker never came back."""
    [message] = await accepted(backend.store, a_task())
    clock.advance(TTL - MILLISECOND)
    await claimed_alone(backend.store, kinds=[TASK])
    await backend.store.cancel([message], tenant=ACME)
    clock.advance(past(LEASE))

    assert await backend.upkeep.expire(limit=10) == 1
    assert await _state(backend, message) is State.CANCELLED
    assert await backend.dead_letters.show(message) is None


async def test_page_has_the_oldest_and_is_bounded(backend: Backend, clock: StoreClock) -> None:
    """First those that expired first; skipped ones do not fill the page."""
    open_one = await accepted(backend.store, a_message(ttl=TTL / 2))
    await claimed_and_declared(backend.store)
    ids = await accepted(backend.store, *messages(3), a_message(ttl=TTL - MILLISECOND))
    clock.advance(TTL)

    pages = [await backend.upkeep.expire(limit=1)]
    first_gone = await _state(backend, ids[3])
    pages += [await backend.upkeep.expire(limit=2), await backend.upkeep.expire(limit=2)]

    assert pages == [1, 2, 1]
    assert first_gone is State.EXPIRED
    assert await _state(backend, open_one[0]) is State.SENT_ATTEMPT


async def test_finished_message_does_not_expire(backend: Backend, clock: StoreClock) -> None:
    """Sent stays sent."""
    await accepted(backend.store, *messages(2))
    for job in await claimed(backend.store):
        await settled(backend.store, job, sent())
    clock.advance(2 * TTL)

    assert await backend.upkeep.expire(limit=10) == 0

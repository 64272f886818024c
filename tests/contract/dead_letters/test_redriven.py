"""Dead letters, redriven: redrive starts a new round and a new ttl, once; refused while already redriven."""

from datetime import timedelta

from carteiro.model import (
    DeadReason,
    EventType,
    MessageId,
    RedriveAnswer,
    Settled,
    State,
)
from carteiro.ports import Backend
from support.builders import TTL, a_message, dead, messages, sent
from support.clock import StoreClock, past
from support.steps import (
    HOLD,
    accepted,
    attempted,
    claimed,
    claimed_alone,
    claimed_and_declared,
    claimed_ids,
    declare,
    everything_about,
    settled,
)


async def _dead_message(backend: Backend, *, priority: int = 5) -> MessageId:
    [message] = await accepted(backend.store, a_message(priority=priority))
    await attempted(backend.store, dead())
    return message


async def test_redriven_message_starts_a_new_round(backend: Backend, clock: StoreClock) -> None:
    """Charges and doubts start at zero, the ttl starts now; the attempts stay counted."""
    message = await _dead_message(backend)
    before = await backend.reading.message(message)
    clock.advance(timedelta(days=3))

    answers = await backend.dead_letters.redrive([message], by="ana")

    row = await backend.reading.message(message)
    assert answers == [RedriveAnswer.REDRIVEN]
    assert before is not None
    assert row is not None
    assert row.state is State.ENQUEUED
    assert row.round == before.round + 1
    assert (row.charged, row.in_doubt, row.attempts) == (0, 0, before.attempts)
    assert (row.due_at, row.expires_at) == (clock.at(), clock.at(TTL))
    assert row.finished_at is None


async def test_timeline_has_the_user_of_a_redrive(backend: Backend, clock: StoreClock) -> None:
    """A redrive is an ENQUEUED of its round."""
    message = await _dead_message(backend)
    clock.advance(timedelta(seconds=1))
    await backend.dead_letters.redrive([message], by="ana")

    [*_, last] = await backend.reading.events(message)

    assert last.type is EventType.ENQUEUED
    assert last.at == clock.at()
    assert last.metadata["redrivenBy"] == "ana"
    assert last.metadata["round"] == 2


async def test_redriven_message_is_claimed_as_new(backend: Backend) -> None:
    """Ready at once, with no claim counted and no attempt open, in the order of its priority."""
    urgent = await _dead_message(backend, priority=1)
    [other] = await accepted(backend.store, a_message())

    await backend.dead_letters.redrive([urgent], by="ana")
    first, second = await claimed(backend.store)

    assert [first.lease.job, second.lease.job] == [urgent, other]
    assert (first.claims, first.open_attempt, first.charged) == (1, False, 0)


async def test_entry_is_marked_while_it_is_redriven(backend: Backend, clock: StoreClock) -> None:
    """With the time of the redrive."""
    message = await _dead_message(backend)
    clock.advance(timedelta(seconds=1))
    await backend.dead_letters.redrive([message], by="ana")

    letter = await backend.dead_letters.show(message)

    assert letter is not None
    assert letter.redriven_at == clock.at()
    assert letter.moved_at == clock.at(-timedelta(seconds=1))


async def test_redrive_is_refused_while_already_redriven(backend: Backend) -> None:
    """Requested twice, in one batch or in two, it is redriven once."""
    message = await _dead_message(backend)

    answers = await backend.dead_letters.redrive([message, message], by="ana")
    before = await everything_about(backend, message)
    again = await backend.dead_letters.redrive([message], by="rui")

    assert answers == [RedriveAnswer.REDRIVEN, RedriveAnswer.ALREADY]
    assert again == [RedriveAnswer.ALREADY]
    assert await everything_about(backend, message) == before
    assert await claimed_ids(backend.store) == [message]


async def test_redriven_message_that_dies_again_can_be_redriven_again(backend: Backend) -> None:
    """Each death allows one redrive."""
    message = await _dead_message(backend)
    for round_ in (2, 3):
        await backend.dead_letters.redrive([message], by="ana")
        await attempted(backend.store, dead())
        row = await backend.reading.message(message)
        assert row is not None
        assert row.round == round_

    assert await backend.dead_letters.redrive([message], by="ana") == [RedriveAnswer.REDRIVEN]


async def test_message_that_is_not_dead_is_not_found(backend: Backend) -> None:
    """Unknown, waiting or sent: there is no dead letter to redrive."""
    [done] = await accepted(backend.store, a_message())
    await attempted(backend.store, sent())
    [waiting] = await accepted(backend.store, a_message())
    ids = [MessageId("unknown"), done, waiting]

    assert await backend.dead_letters.redrive(ids, by="ana") == [RedriveAnswer.NOT_FOUND] * 3


async def test_expired_message_has_its_whole_ttl_again(backend: Backend, clock: StoreClock) -> None:
    """A redriven message does not expire at once."""
    [message] = await accepted(backend.store, a_message())
    clock.advance(TTL)
    await backend.upkeep.expire(limit=10)
    await backend.dead_letters.redrive([message], by="ana")

    clock.advance(TTL - timedelta(milliseconds=1))

    assert await backend.upkeep.expire(limit=10) == 0
    assert await claimed_ids(backend.store) == [message]


async def test_worker_of_an_earlier_round_is_fenced(backend: Backend, clock: StoreClock) -> None:
    """Its failure counts for the round that it belongs to, not for the new one."""
    [message] = await accepted(backend.store, a_message())
    slow = await claimed_and_declared(backend.store)
    clock.advance(past(HOLD))
    await attempted(backend.store, dead())
    await backend.dead_letters.redrive([message], by="ana")
    before = await everything_about(backend, message)

    await settled(backend.store, slow, dead())

    assert await everything_about(backend, message) == before
    job = await claimed_alone(backend.store)
    await declare(backend.store, job)
    assert await settled(backend.store, job, sent()) == Settled(State.SENT)


async def test_many_are_redriven_in_one_call(backend: Backend) -> None:
    """Answers come in the order of the ids."""
    ids = await accepted(backend.store, *messages(3))
    for job in await claimed(backend.store):
        await settled(backend.store, job, dead(DeadReason.VALIDATION_FAILED, charged=False))

    answers = await backend.dead_letters.redrive([*ids, MessageId("unknown")], by="ana")

    assert answers == [*[RedriveAnswer.REDRIVEN] * 3, RedriveAnswer.NOT_FOUND]
    assert await claimed_ids(backend.store) == ids

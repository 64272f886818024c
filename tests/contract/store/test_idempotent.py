"""Store, idempotent: accept, declare and settle repeated with the same ids answer alike and write nothing."""

from datetime import timedelta

import pytest

from carteiro.model import (
    Accepted,
    Begun,
    End,
    NewRecipient,
    Refused,
    RefusedWhy,
    Replayed,
    Settled,
    Start,
    State,
    TenantUnknown,
    Verdict,
)
from carteiro.ports import Backend, Store
from support.builders import BRASA, a_message, a_task, dead, messages, retry, sent
from support.clock import StoreClock, past
from support.steps import (
    HOLD,
    accepted,
    attempted,
    claimed_alone,
    claimed_and_declared,
    claimed_ids,
    declare,
    everything_about,
    settled,
)


async def test_known_message_is_replayed(backend: Backend, clock: StoreClock) -> None:
    """Accepting again answers with the first acceptance and writes nothing, in any batch."""
    new = a_message(recipient=NewRecipient("ana@example.com", external_id="ana"))
    [first] = await backend.store.accept([new])
    before = await everything_about(backend, new.id)

    clock.advance(timedelta(hours=1))
    other = a_message(BRASA, id=new.id, content='{"html":"other"}', priority=1)
    answers = await backend.store.accept([new, other])

    assert isinstance(first, Accepted)
    told = (first.received_at, first.recipient_id, new.request_id)
    assert answers == [Replayed(new.id, *told)] * 2
    assert first.recipient_id is not None
    assert await everything_about(backend, new.id) == before
    assert await claimed_ids(backend.store) == [new.id]


async def test_repeated_message_in_one_batch_is_accepted_once(store: Store) -> None:
    """The second of two equal ids is a replay, as if it had come later."""
    new = a_message()

    first, second = await store.accept([new, new])

    assert isinstance(first, Accepted)
    assert second == Replayed(new.id, first.received_at, None, new.request_id)
    assert await claimed_ids(store) == [new.id]


@pytest.mark.parametrize("others", [0, 50], ids=["short", "long"])
async def test_new_messages_next_to_a_known_one_are_accepted(backend: Backend, others: int) -> None:
    """Each as it was submitted, whatever it has in common with the others."""
    known = a_message()
    await accepted(backend.store, known)
    new = [a_message(priority=1, content='{"text":"\x1f"}'), a_task(BRASA, ttl=timedelta(hours=3))]

    first, second, *rest = await backend.store.accept([new[0], known, new[1], *messages(others)])

    assert isinstance(first, Accepted)
    assert isinstance(second, Replayed)
    assert [type(each) for each in rest] == [Accepted] * (1 + others)
    stored = [await backend.reading.message(each.id) for each in new]
    told = [(e.priority, e.content, e.kind, e.expires_at - e.due_at) for e in stored if e]
    assert told == [(each.priority, each.content, each.kind, each.ttl) for each in new]
    assert sum(each.unfinished for each in await backend.reading.depths()) == 3 + others


@pytest.mark.parametrize("verdict", [sent(), dead()], ids=["sent", "dead"])
async def test_finished_message_is_replayed_and_not_sent_again(
    store: Store, verdict: Verdict
) -> None:
    """A finished message is still known."""
    new = a_message()
    await accepted(store, new)
    await attempted(store, verdict)

    [answer] = await store.accept([new])

    assert isinstance(answer, Replayed)
    assert await claimed_ids(store) == []


async def test_message_of_an_unknown_tenant_leaves_nothing_behind(backend: Backend) -> None:
    """One refused item neither stops its batch nor writes anything; accepted later, it is new."""
    good, bad = a_message(), a_message("nobody")

    answers = await backend.store.accept([bad, good])

    assert answers[0] == TenantUnknown(bad.tenant)
    assert isinstance(answers[1], Accepted)
    assert await backend.reading.message(bad.id) is None
    assert await backend.reading.events(bad.id) == []


async def test_empty_batch_does_nothing(store: Store) -> None:
    assert await store.accept([]) == []
    assert await store.declare([]) == []
    assert await store.settle([]) == []


async def test_repeated_declare_is_the_same_attempt(backend: Backend, clock: StoreClock) -> None:
    """A declare whose answer was lost gets the same answer: same number, same hold, no second event."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)
    before = await everything_about(backend, message)

    clock.advance(timedelta(seconds=5))
    again = await declare(backend.store, job)

    assert again == Begun(1)
    assert await everything_about(backend, message) == before


async def test_repeated_declare_in_one_batch_is_one_attempt(store: Store) -> None:
    """Equal starts of a batch see each other."""
    await accepted(store, a_message())
    job = await claimed_alone(store)
    start = Start(job.lease, "sandbox", HOLD)

    assert await store.declare([start, start]) == [Begun(1), Begun(1)]


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (sent(), State.SENT),
        (retry(timedelta(minutes=1)), State.RETRY_SCHEDULED),
        (retry(), State.RETRY_SCHEDULED),
        (dead(), State.FAILED),
    ],
    ids=["sent", "retry", "retry at once", "dead"],
)
async def test_repeated_settle_is_the_same_end(
    backend: Backend, clock: StoreClock, verdict: Verdict, state: State
) -> None:
    """A settle whose answer was lost gets the same answer and charges nothing twice."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)
    first = await settled(backend.store, job, verdict)
    before = await everything_about(backend, message)

    clock.advance(timedelta(seconds=5))
    again = await settled(backend.store, job, verdict)

    assert first == again == Settled(state)
    assert await everything_about(backend, message) == before


async def test_repeated_settle_in_one_batch_is_one_end(backend: Backend) -> None:
    """Equal ends of a batch see each other."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)
    end = End(job.lease, retry())

    answers = await backend.store.settle([end, end])

    row = await backend.reading.message(message)
    assert answers == [Settled(State.RETRY_SCHEDULED)] * 2
    assert row is not None
    assert row.charged == 1


async def test_task_settled_again_is_charged_once(backend: Backend) -> None:
    """Kinds that do not declare repeat as safely as those that do."""
    [message] = await accepted(backend.store, a_task())
    job = await claimed_alone(backend.store, kinds=[a_task().kind])

    first = await settled(backend.store, job, retry(), attempted=True)
    again = await settled(backend.store, job, retry(), attempted=True)

    row = await backend.reading.message(message)
    assert first == again == Settled(State.RETRY_SCHEDULED)
    assert row is not None
    assert (row.attempts, row.charged) == (1, 1)


async def test_repeated_settle_does_not_disturb_the_next_claimer(
    backend: Backend, clock: StoreClock
) -> None:
    """It finds the job reassigned and does not change it."""
    [message] = await accepted(backend.store, a_message())
    first = await attempted(backend.store, retry())
    second = await claimed_alone(backend.store)

    again = await settled(backend.store, first, retry())

    assert again == Settled(State.RETRY_SCHEDULED)
    assert await declare(backend.store, second) == Begun(2)
    clock.advance(past(HOLD))
    assert await claimed_ids(backend.store) == [message]


@pytest.mark.parametrize(
    ("verdict", "why"),
    [(sent(), RefusedWhy.FINISHED), (retry(), RefusedWhy.LOST)],
    ids=["finished", "given up"],
)
async def test_attempt_cannot_be_declared_after_its_end(
    store: Store, verdict: Verdict, why: RefusedWhy
) -> None:
    """A declare that arrives after its own settle makes no new attempt."""
    await accepted(store, a_message())
    job = await attempted(store, verdict)

    assert await declare(store, job) == Refused(why)

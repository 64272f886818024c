"""Reading, faithful: fields, states and events are read as they were written, oldest first."""

from datetime import timedelta

from carteiro.model import (
    EMAIL,
    Delivery,
    Event,
    EventType,
    Lease,
    LeasedJob,
    MessageId,
    State,
    StoredMessage,
    TimelineEvent,
)
from carteiro.ports import Backend
from support.builders import ACME, a_claim_id, a_message, dead, messages, retry, sent
from support.clock import StoreClock
from support.steps import (
    HOLD,
    accepted,
    attempted,
    claim,
    claimed_alone,
    claimed_and_declared,
    claimed_ids,
    declare,
    settled,
)

SECOND = timedelta(seconds=1)
CONTENT = '{"html":"<p>Olá, José — 你好 🚀</p>","n":1e400,"z":"\\u0000"}'


async def test_message_is_read_as_it_was_accepted(backend: Backend, clock: StoreClock) -> None:
    """Every field of a new message, to the last character."""
    new = a_message(
        priority=2,
        due=clock.at(90 * SECOND),
        ttl=timedelta(hours=5),
        content=CONTENT,
        external_id="order-7",
        subject="Olá ✉",
    )
    await accepted(backend.store, new)

    assert await backend.reading.message(new.id) == StoredMessage(
        id=new.id,
        tenant=ACME,
        kind=EMAIL,
        state=State.ENQUEUED,
        priority=2,
        due_at=clock.at(90 * SECOND),
        expires_at=clock.at(90 * SECOND + timedelta(hours=5)),
        attempts=0,
        charged=0,
        in_doubt=0,
        round=1,
        revision=1,
        holder=None,
        held_until=None,
        cancel_requested_at=None,
        request_id="request-1",
        external_id="order-7",
        recipient_id=None,
        to="ana@example.com",
        subject="Olá ✉",
        provider=None,
        provider_id=None,
        failure=None,
        duration=None,
        created_at=clock.at(),
        finished_at=None,
        content=CONTENT,
    )


async def test_open_attempt_is_read_with_its_holder(backend: Backend, clock: StoreClock) -> None:
    """Its worker, its provider, and the end of its hold."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)

    row = await backend.reading.message(message)

    assert row is not None
    assert (row.state, row.attempts, row.provider) == (State.SENT_ATTEMPT, 1, "sandbox")
    assert (row.holder, row.held_until) == (job.lease.claim, clock.at(HOLD))


async def test_sent_message_is_read_with_its_result(backend: Backend, clock: StoreClock) -> None:
    """The provider's id, the duration and the end of the last attempt; an earlier failure is history."""
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, retry(SECOND))
    clock.advance(SECOND)
    job = await claimed_and_declared(backend.store)
    clock.advance(SECOND)
    await settled(backend.store, job, sent("id-9"), duration=timedelta(milliseconds=1234))

    row = await backend.reading.message(message)

    assert row is not None
    assert (row.state, row.attempts, row.charged) == (State.SENT, 2, 1)
    assert (row.provider, row.provider_id, row.failure) == ("sandbox", "id-9", None)
    assert row.duration == timedelta(milliseconds=1234)
    assert row.finished_at == clock.at()
    assert (row.holder, row.held_until) == (job.lease.claim, None)


async def test_failed_attempt_is_read_with_its_failure(backend: Backend, clock: StoreClock) -> None:
    """Every field of the failure, and the time of the next attempt."""
    [message] = await accepted(backend.store, a_message())
    verdict = retry(90 * SECOND)
    await attempted(backend.store, verdict)

    row = await backend.reading.message(message)

    assert row is not None
    assert (row.state, row.charged) == (State.RETRY_SCHEDULED, 1)
    assert row.failure == verdict.failure
    assert row.due_at == clock.at(90 * SECOND)
    assert row.finished_at is None


async def test_timeline_is_read_oldest_first(backend: Backend, clock: StoreClock) -> None:
    """A whole life: each event with its own metadata and time."""
    new = a_message(request_id='"ação"')
    accepted_at = clock.at()
    await accepted(backend.store, new)
    clock.advance(SECOND)
    job = await claimed_alone(backend.store)
    told = {"via": "http", "nested": {"ação": [1, None, True]}}
    received = Event(EventType.RECEIVED, told, ago=timedelta(milliseconds=20))
    await declare(backend.store, job, events=(received,))
    clock.advance(SECOND)
    verdict = retry(90 * SECOND)
    await settled(backend.store, job, verdict)

    assert await backend.reading.events(new.id) == [
        TimelineEvent(EventType.ENQUEUED, {"requestId": '"ação"'}, accepted_at),
        TimelineEvent(EventType.RECEIVED, told, clock.at(-SECOND - timedelta(milliseconds=20))),
        TimelineEvent(
            EventType.SENT_ATTEMPT, {"attempt": 1, "provider": "sandbox"}, clock.at(-SECOND)
        ),
        TimelineEvent(
            EventType.RETRY_SCHEDULED,
            {
                "errorCode": "421",
                "errorCategory": "TRANSIENT_ERROR",
                "originalCode": "421 4.3.2",
                "errorMessage": "Service not available, try later",
                "scope": "destination",
                "rule": "smtp.421",
                "willRetry": True,
                "nextAttemptNumber": 2,
                "backoffDelay": 90_000,
            },
            clock.at(),
        ),
    ]


async def test_final_events_have_their_metadata(backend: Backend) -> None:
    """SENT and FAILED have the fields that support needs."""
    [done] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)
    await settled(backend.store, job, sent("id-9"), duration=timedelta(milliseconds=70))
    [buried] = await accepted(backend.store, a_message())
    await attempted(backend.store, dead())

    sent_event = (await backend.reading.events(done))[-1]
    failed_event = (await backend.reading.events(buried))[-1]

    assert sent_event.metadata == {
        "sesMessageId": "id-9",
        "provider": "sandbox",
        "durationMs": 70,
        "attempt": 1,
    }
    assert failed_event.metadata == {
        "errorCode": "550",
        "errorCategory": "PERMANENT_ERROR",
        "originalCode": "421 4.3.2",
        "errorMessage": "Service not available, try later",
        "scope": "destination",
        "rule": "smtp.421",
        "willRetry": False,
        "reason": "permanent_error",
    }


async def test_unknown_message_has_no_timeline(backend: Backend) -> None:
    assert await backend.reading.events(MessageId("unknown")) == []


async def test_leased_job_has_the_fields_of_the_ledger(backend: Backend, clock: StoreClock) -> None:
    """The worker needs no second query: content, counters, delivery and time left come with the claim."""
    new = a_message(delivery=Delivery.AT_MOST_ONCE, content=CONTENT, ttl=timedelta(hours=1))
    await accepted(backend.store, new)
    await attempted(backend.store, retry(SECOND))
    clock.advance(SECOND)
    claim_id = a_claim_id()

    [job] = (await claim(backend.store, claim_id=claim_id)).jobs

    assert job == LeasedJob(
        lease=Lease(new.id, claim_id),
        kind=EMAIL,
        tenant=ACME,
        claims=1,
        content=CONTENT,
        ledger_tenant=ACME,
        request_id="request-1",
        delivery=Delivery.AT_MOST_ONCE,
        attempts=1,
        charged=1,
        in_doubt=0,
        revision=1,
        open_attempt=False,
        expires_in=timedelta(hours=1) - SECOND,
        provider="sandbox",
    )


async def test_unsettled_messages_are_those_not_finished(backend: Backend) -> None:
    """Waiting or leased is unsettled; finished or unknown is not; the order of the ids is kept."""
    [done] = await accepted(backend.store, a_message())
    await attempted(backend.store, sent())
    waiting, leased = await accepted(backend.store, a_message(priority=9), a_message(priority=1))
    assert await claimed_ids(backend.store, limit=1) == [leased]

    ids = [waiting, MessageId("unknown"), done, leased]

    assert await backend.reading.unsettled(ids) == [waiting, leased]
    assert await backend.reading.unsettled([]) == []


async def test_messages_are_counted_by_state(backend: Backend) -> None:
    """States without messages are absent or zero."""
    for verdict in (sent(), sent(), dead(), retry(SECOND)):
        await accepted(backend.store, a_message())
        await attempted(backend.store, verdict)
    await accepted(backend.store, *messages(3))

    states = await backend.reading.states()

    assert {state: count for state, count in states.items() if count} == {
        State.SENT: 2,
        State.FAILED: 1,
        State.RETRY_SCHEDULED: 1,
        State.ENQUEUED: 3,
    }


async def test_long_timeline_is_whole(backend: Backend, clock: StoreClock) -> None:
    """However many events, however long: all are there, in their order."""
    [message] = await accepted(backend.store, a_message())
    told = [EventType.ENQUEUED]
    for attempt in range(12):
        job = await claimed_alone(backend.store)
        texts = {"text": f'{attempt} ✉ "quoted" ' * 60}
        await declare(backend.store, job, events=(Event(EventType.RECEIVED, texts),))
        verdict = sent() if attempt == 11 else retry(SECOND)
        await settled(backend.store, job, verdict)
        clock.advance(SECOND)
        told += [EventType.RECEIVED, EventType.SENT_ATTEMPT]
        told.append(EventType.SENT if attempt == 11 else EventType.RETRY_SCHEDULED)

    events = await backend.reading.events(message)

    assert [each.type for each in events] == told
    assert [each.metadata["text"][:2] for each in events if "text" in each.metadata] == [
        f"{attempt} "[:2] for attempt in range(12)
    ]
    assert [each.at for each in events] == sorted(each.at for each in events)

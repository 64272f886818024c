"""Store, declared: only a declared attempt may be in doubt; a job that was only claimed comes back unchanged."""

from datetime import timedelta

from carteiro.model import (
    Begun,
    End,
    Event,
    EventType,
    Refused,
    RefusedWhy,
    Settled,
    Start,
    State,
    Verdict,
)
from carteiro.ports import Backend, Store
from support.builders import ACME, TASK, a_message, a_task, dead, messages, retry, sent
from support.clock import MILLISECOND, StoreClock, past
from support.steps import (
    HOLD,
    LEASE,
    RECEIVED,
    VALIDATED,
    accepted,
    claimed,
    claimed_alone,
    claimed_and_declared,
    claimed_ids,
    declare,
    event_types,
    everything_about,
    settled,
)


async def test_claimed_jobs_without_an_attempt_come_back_unchanged(
    backend: Backend, clock: StoreClock
) -> None:
    """A worker dies with 200 claimed jobs: none is in doubt, none is charged, no ledger row changed."""
    ids = await accepted(backend.store, *messages(200))
    before = [await everything_about(backend, each) for each in ids]
    await claimed(backend.store, limit=200)

    clock.advance(past(LEASE))
    jobs = await claimed(backend.store, limit=200)

    assert [job.lease.job for job in jobs] == ids
    assert not any(job.open_attempt or job.attempts or job.charged or job.in_doubt for job in jobs)
    assert {job.claims for job in jobs} == {2}
    assert [await everything_about(backend, each) for each in ids] == before


async def test_declared_attempt_that_never_ended_is_found_open(
    backend: Backend, clock: StoreClock
) -> None:
    """The next claimer sees the doubt; declaring it counts the doubt and the new attempt."""
    [message] = await accepted(backend.store, a_message())
    await claimed_and_declared(backend.store)

    clock.advance(past(HOLD))
    job = await claimed_alone(backend.store)
    answer = await declare(backend.store, job)

    row = await backend.reading.message(message)
    assert job.open_attempt
    assert answer == Begun(2)
    assert row is not None
    assert (row.attempts, row.in_doubt, row.charged) == (2, 1, 0)
    assert await event_types(backend, message) == [
        EventType.ENQUEUED,
        EventType.RECEIVED,
        EventType.VALIDATED,
        EventType.SENT_ATTEMPT,
        EventType.IN_DOUBT,
        EventType.RECEIVED,
        EventType.VALIDATED,
        EventType.SENT_ATTEMPT,
    ]


async def test_hold_that_ends_before_its_lease_is_reaped(
    backend: Backend, clock: StoreClock
) -> None:
    """The hold replaces the lease, also for upkeep while nobody claims."""
    await accepted(backend.store, a_message())
    job = await claimed_alone(backend.store)
    await declare(backend.store, job, hold=LEASE / 3)

    clock.advance(LEASE / 2)

    assert await backend.store.reap(limit=10) == 1


async def test_reaping_leaves_the_doubt_to_the_next_claimer(
    backend: Backend, clock: StoreClock
) -> None:
    """Reap readies the job and decides nothing."""
    [message] = await accepted(backend.store, a_message())
    await claimed_and_declared(backend.store)
    clock.advance(past(HOLD))
    before = await everything_about(backend, message)

    assert await backend.store.reap(limit=10) == 1

    assert await everything_about(backend, message) == before
    assert (await claimed_alone(backend.store)).open_attempt


async def test_settled_unknown_outcome_is_closed(backend: Backend, clock: StoreClock) -> None:
    """The worker itself lost the answer: the doubt is counted by settle, and the next claim finds nothing open."""
    await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)

    verdict = retry(timedelta(seconds=1), charged=False)
    await settled(backend.store, job, verdict, in_doubt=1)
    clock.advance(timedelta(seconds=1))
    again = await claimed_alone(backend.store)

    assert not again.open_attempt
    assert (again.attempts, again.charged, again.in_doubt) == (1, 0, 1)


async def test_hold_shorter_than_the_lease_replaces_it_too(store: Store, clock: StoreClock) -> None:
    """One expiry per job: a dead worker's message is free when its hold ends."""
    [message] = await accepted(store, a_message())
    job = await claimed_alone(store, lease=timedelta(minutes=10))
    await declare(store, job, hold=timedelta(seconds=1))

    clock.advance(timedelta(seconds=1))

    assert await claimed_ids(store) == [message]


async def test_released_job_is_as_if_never_claimed(backend: Backend, clock: StoreClock) -> None:
    """At once or after a delay: no trace in the ledger, and the claim does not count."""
    [message] = await accepted(backend.store, a_message())
    before = await everything_about(backend, message)

    first = await claimed_alone(backend.store)
    await backend.store.release([first.lease])
    second = await claimed_alone(backend.store)
    await backend.store.release([second.lease], wait=timedelta(seconds=5))
    too_early = await claimed(backend.store)
    clock.advance(timedelta(seconds=5))
    third = await claimed_alone(backend.store)

    assert too_early == []
    assert (first.claims, second.claims, third.claims) == (1, 1, 1)
    assert await everything_about(backend, message) == before


async def test_declared_attempt_cannot_be_released(store: Store, clock: StoreClock) -> None:
    """It may be in flight, and would be sent twice: it stays held."""
    await accepted(store, a_message())
    job = await claimed_and_declared(store)

    await store.release([job.lease])

    clock.advance(HOLD - MILLISECOND)
    assert await claimed_ids(store) == []
    assert await settled(store, job, sent()) == Settled(State.SENT)


async def test_open_attempt_of_another_does_not_prevent_a_release(
    store: Store, clock: StoreClock
) -> None:
    """A claimer that found a doubt and made no attempt of its own may release the job."""
    await accepted(store, a_message())
    await claimed_and_declared(store)
    clock.advance(past(HOLD))
    job = await claimed_alone(store)

    await store.release([job.lease])

    assert (await claimed_alone(store)).open_attempt


async def test_events_of_a_start_are_stamped_and_come_before_the_attempt(
    backend: Backend, clock: StoreClock
) -> None:
    """Stages keep their own times; the attempt itself is stamped with the commit."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_alone(backend.store)
    clock.advance(timedelta(seconds=1))
    received = Event(EventType.RECEIVED, {"n": 1}, ago=timedelta(milliseconds=30))

    await declare(backend.store, job, events=(received, VALIDATED))

    [_, *events] = await backend.reading.events(message)
    assert [(event.type, event.at) for event in events] == [
        (EventType.RECEIVED, clock.at(-timedelta(milliseconds=30))),
        (EventType.VALIDATED, clock.at()),
        (EventType.SENT_ATTEMPT, clock.at()),
    ]
    assert events[0].metadata == {"n": 1}
    assert events[2].metadata == {"attempt": 1, "provider": "sandbox"}


async def test_refused_start_does_not_stop_its_batch(backend: Backend, clock: StoreClock) -> None:
    """Each start is decided alone; a refused one leaves no event."""
    short, cancelled, good = await accepted(
        backend.store,
        a_message(ttl=timedelta(seconds=1)),
        a_message(),
        a_message(),
    )
    jobs = await claimed(backend.store)
    await backend.store.cancel([cancelled], tenant=ACME)
    clock.advance(timedelta(seconds=1))

    starts = [Start(job.lease, "sandbox", HOLD, events=(RECEIVED,)) for job in jobs]
    answers = await backend.store.declare(starts)

    assert answers == [Refused(RefusedWhy.EXPIRED), Refused(RefusedWhy.FINISHED), Begun(1)]
    assert EventType.RECEIVED not in await event_types(backend, short)
    assert EventType.RECEIVED not in await event_types(backend, cancelled)
    assert (await event_types(backend, good))[-1] is EventType.SENT_ATTEMPT


async def test_attempt_is_not_declared_before_its_time(store: Store, clock: StoreClock) -> None:
    """The clock stepped back before the due time: the claimer gets the time to wait."""
    await accepted(store, a_message())
    job = await claimed_alone(store)

    clock.back(timedelta(seconds=5))

    assert await declare(store, job) == Refused(RefusedWhy.NOT_DUE, timedelta(seconds=5))


async def test_kind_that_does_not_declare_is_never_in_doubt(
    backend: Backend, clock: StoreClock
) -> None:
    """A task that vanished with its worker just runs again; its attempts are counted when they end."""
    [message] = await accepted(backend.store, a_task())
    await claimed_alone(backend.store, kinds=[TASK])
    clock.advance(past(LEASE))
    job = await claimed_alone(backend.store, kinds=[TASK])

    answer = await settled(backend.store, job, sent(), attempted=True)

    row = await backend.reading.message(message)
    assert not job.open_attempt
    assert answer == Settled(State.SENT)
    assert row is not None
    assert (row.attempts, row.in_doubt) == (1, 0)
    assert await event_types(backend, message) == [EventType.SENT]


async def test_different_attempts_of_a_list_are_judged_each_for_itself(
    backend: Backend, clock: StoreClock
) -> None:
    """The first attempt of a message, one after a failure, one in doubt and one that is cancelled; then their ends."""
    ids = await accepted(backend.store, *messages(3))
    again, open_one, _ = await claimed(backend.store)
    await settled(backend.store, again, retry())
    await declare(backend.store, open_one)
    clock.advance(past(HOLD))
    await accepted(backend.store, *messages(2))
    jobs = sorted(await claimed(backend.store), key=lambda job: job.lease.job)
    await backend.store.cancel([jobs[4].lease.job], tenant=ACME)

    starts = [Start(each.lease, "sandbox", HOLD, each.open_attempt, (RECEIVED,)) for each in jobs]
    begun = await backend.store.declare(starts)
    verdicts: list[Verdict] = [sent("a"), retry(timedelta(days=2)), dead(), sent("d")]
    ends = [End(each.lease, verdict) for each, verdict in zip(jobs[:4], verdicts, strict=True)]
    answers = await backend.store.settle(ends)

    assert [each.lease.job for each in jobs[:3]] == ids
    assert begun == [Begun(2), Begun(2), Begun(1), Begun(1), Refused(RefusedWhy.FINISHED)]
    assert answers == [
        Settled(State.SENT),
        Settled(State.EXPIRED),
        Settled(State.FAILED),
        Settled(State.SENT),
    ]
    rows = [await backend.reading.message(each.lease.job) for each in jobs[:4]]
    assert [each and each.attempts for each in rows] == [2, 2, 1, 1]
    assert [each and each.in_doubt for each in rows] == [0, 1, 0, 0]
    assert [each and each.provider_id for each in rows] == ["a", None, None, "d"]

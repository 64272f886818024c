"""Reading, placed: the reported position of a job is where a claim would find it."""

from datetime import timedelta

import pytest

from carteiro.model import (
    EMAIL,
    LATEST,
    AutomaticPlan,
    Depth,
    MessageId,
    QueuePlace,
    SendLimit,
    State,
)
from carteiro.model.reports import Report
from carteiro.policy.waiting import Estimate
from carteiro.ports import Backend
from carteiro.runtime.messages import explain_message
from carteiro.stores import queue_columns
from carteiro.stores.sql import reading
from support.builders import (
    ACME,
    BRASA,
    TASK,
    a_message,
    a_task,
    a_tenant,
    dead,
    messages,
    retry,
    sent,
)
from support.clock import StoreClock, past
from support.steps import (
    HOLD,
    LEASE,
    accepted,
    attempted,
    claimed,
    claimed_alone,
    claimed_and_declared,
    claimed_ids,
)

MINUTE = timedelta(minutes=1)


async def _place(backend: Backend, message: MessageId) -> QueuePlace:
    place = await backend.reading.place(message)
    assert place is not None
    return place


async def test_ready_job_is_only_ready(backend: Backend, clock: StoreClock) -> None:
    """No time to wait for, no claim, and its tenant is about to be served."""
    [message] = await accepted(backend.store, a_message())

    assert await _place(backend, message) == QueuePlace(
        parked_until=None,
        is_claimed=False,
        claims=0,
        tenant_wakes_at=None,
        tenant_in_flight=0,
        limited_until=None,
        waits_since=clock.at(),
    )


async def test_message_without_a_job_has_no_place(backend: Backend) -> None:
    """Finished, dead or unknown."""
    [ended] = await accepted(backend.store, a_message())
    await attempted(backend.store, sent())
    [buried] = await accepted(backend.store, a_message())
    await attempted(backend.store, dead())

    for message in (ended, buried, MessageId("unknown")):
        assert await backend.reading.place(message) is None


async def test_scheduled_job_is_parked_until_it_is_due(backend: Backend, clock: StoreClock) -> None:
    """Then it is ready, with or without a claim."""
    due = clock.at(MINUTE)
    [message] = await accepted(backend.store, a_message(due=due))

    before = await _place(backend, message)
    clock.advance(MINUTE)
    after = await _place(backend, message)

    assert (before.parked_until, before.is_claimed, before.tenant_wakes_at) == (due, False, due)
    assert (after.parked_until, after.tenant_wakes_at) == (None, None)
    assert await claimed_ids(backend.store) == [message]


async def test_job_with_a_retry_is_parked_until_its_time(
    backend: Backend, clock: StoreClock
) -> None:
    """The claims of the attempt before do not count."""
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, retry(MINUTE))

    place = await _place(backend, message)

    assert (place.parked_until, place.is_claimed, place.claims) == (clock.at(MINUTE), False, 0)


async def test_claimed_job_is_parked_until_its_lease_ends(
    backend: Backend, clock: StoreClock
) -> None:
    """Declared, until its hold ends; after that a claim would find it."""
    [message] = await accepted(backend.store, a_message())
    await claimed_and_declared(backend.store)

    held = await _place(backend, message)
    clock.advance(past(HOLD))
    lost = await _place(backend, message)

    assert (held.parked_until, held.is_claimed) == (clock.at(HOLD - past(HOLD)), True)
    assert (held.claims, held.tenant_in_flight) == (1, 1)
    assert (lost.parked_until, lost.is_claimed, lost.tenant_in_flight) == (None, False, 0)
    assert await claimed_ids(backend.store) == [message]


async def test_released_job_is_parked_for_its_delay(backend: Backend, clock: StoreClock) -> None:
    """As if it had not been claimed."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_alone(backend.store)
    await backend.store.release([job.lease], wait=MINUTE)

    place = await _place(backend, message)

    assert (place.parked_until, place.is_claimed, place.claims) == (clock.at(MINUTE), False, 0)


async def test_tenant_at_its_cap_waits_for_its_first_lease(
    backend: Backend, clock: StoreClock
) -> None:
    """Jobs in flight are counted over all kinds."""
    await backend.tenants.define([a_tenant(ACME, cap=1)])
    await accepted(backend.store, a_task())
    await claimed(backend.store, kinds=[TASK])
    [message] = await accepted(backend.store, a_message())
    await claimed(backend.store)

    place = await _place(backend, message)

    assert (place.parked_until, place.tenant_in_flight) == (None, 1)
    assert place.tenant_wakes_at == clock.at(LEASE)


async def test_tenant_out_of_tokens_waits_for_the_next(backend: Backend, clock: StoreClock) -> None:
    """One a second: the second job has to wait for it."""
    await backend.tenants.define([a_tenant(ACME, rate_per_second=1.0)])
    _, second = await accepted(backend.store, *messages(2))
    await claimed(backend.store)

    place = await _place(backend, second)

    assert place.tenant_wakes_at == clock.at(timedelta(seconds=1))


async def test_paused_tenant_waits_without_an_end(backend: Backend) -> None:
    """The latest possible time: the end is unknown."""
    [message] = await accepted(backend.store, a_message())
    await backend.tenants.define([a_tenant(ACME, paused=True)])

    assert (await _place(backend, message)).tenant_wakes_at == LATEST


async def test_used_up_send_limit_has_its_end(backend: Backend, clock: StoreClock) -> None:
    """It holds for every tenant of the kind, and for no other kind."""
    await backend.tenants.limit(EMAIL, SendLimit(1, MINUTE))
    await accepted(backend.store, a_message(ACME))
    [mail] = await accepted(backend.store, a_message(BRASA))
    [task] = await accepted(backend.store, a_task(BRASA))
    await claimed(backend.store)

    limited = (await _place(backend, mail)).limited_until
    clock.advance(MINUTE)

    assert limited == clock.at()
    assert (await _place(backend, mail)).limited_until is None
    assert (await _place(backend, task)).limited_until is None


async def test_ready_jobs_before_it_are_counted(backend: Backend, clock: StoreClock) -> None:
    """Those of its tenant and kind, in the order of claims; a claimed one is in flight, and a finished one gone."""
    since = clock.at()
    _, gone = await accepted(backend.store, *messages(2))
    await claimed(backend.store, limit=1)
    await backend.store.cancel([gone], tenant=ACME)
    first, second = await accepted(backend.store, *messages(2, priority=6))
    clock.advance(MINUTE)
    await accepted(backend.store, a_message(BRASA), a_task())
    later, urgent, last = await accepted(
        backend.store, a_message(priority=6), a_message(priority=1), a_message(priority=7)
    )

    asked = (urgent, first, second, later, last)
    places = [await _place(backend, each) for each in asked]

    assert [each.ahead for each in places] == [0, 1, 2, 3, 4]
    assert [each.parked_ahead for each in places] == [0, 0, 0, 0, 0]
    assert [each.waits_since for each in places] == [clock.at(), since, since, since, since]


async def test_parked_jobs_before_it_are_counted(backend: Backend, clock: StoreClock) -> None:
    """Those that are ready earlier; when they are due and not yet made ready, they wait."""
    due = [clock.at(minutes * MINUTE) for minutes in (1, 1, 2, 3)]
    one, other, second, third = await accepted(
        backend.store, *(a_message(due=each) for each in due)
    )
    [ready] = await accepted(backend.store, a_message())
    asked = (one, other, second, third, ready)

    async def counts() -> list[int]:
        return [(await _place(backend, each)).parked_ahead for each in asked]

    before, place = await counts(), await _place(backend, third)
    clock.advance(2 * MINUTE)
    waits = (await _place(backend, third)).waits_since
    [late] = await accepted(backend.store, a_message())

    assert before == [0, 1, 2, 3, 0]
    assert (place.ahead, place.waits_since) == (1, due[0] - MINUTE)
    assert waits == due[0] - MINUTE
    assert (await _place(backend, late)).ahead + (await _place(backend, late)).parked_ahead == 3


async def test_jobs_before_it_are_counted_up_to_a_bound(
    backend: Backend, clock: StoreClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the cost does not depend on the backlog."""
    for module in (reading, queue_columns):
        monkeypatch.setattr(module, "MOST_AHEAD", 2)
    *_, ready = await accepted(backend.store, *messages(5))
    *_, parked = await accepted(backend.store, *messages(5, due=clock.at(MINUTE)))

    assert (await _place(backend, ready)).ahead == 2
    assert (await _place(backend, parked)).parked_ahead == 2


async def test_message_has_an_estimate_from_the_recent_rate(
    backend: Backend, clock: StoreClock
) -> None:
    """Of its own tenant, which waited all the time; with an open circuit there is none."""
    await accepted(backend.store, *messages(3, BRASA))
    *_, last = await accepted(backend.store, *messages(20))
    clock.advance(MINUTE)
    jobs = [await attempted(backend.store, sent(), limit=1) for _ in range(5)]
    ended = sum(each.tenant == ACME for each in jobs)

    async def estimated() -> Estimate:
        found = await backend.reading.message(last)
        assert found is not None
        told = (
            await explain_message(backend, found, plan=AutomaticPlan(), now=clock.at())
        ).estimate
        assert told is not None
        return told

    told = await estimated()
    report = Report("p", {"smtp": clock.at()}, opened={"smtp": clock.at()})
    await backend.reports.put(report, stay=MINUTE)
    closed = await estimated()

    assert 0 < ended < 5
    assert (told.ahead, told.per_minute) == (20 - 1 - ended, ended)
    assert told.earliest is not None
    assert told.latest is not None
    assert clock.at() < told.earliest < told.latest
    assert closed.latest is None
    assert "circuit is open of smtp" in closed.text


async def test_depths_add_up_by_kind(backend: Backend, clock: StoreClock) -> None:
    """Jobs in the queue, those in flight, and the time since the longest waiting could be claimed."""
    since = clock.at()
    await accepted(backend.store, *messages(3), a_message(BRASA, priority=1))
    clock.advance(MINUTE)
    await accepted(backend.store, a_message(BRASA, priority=9), a_task(due=clock.at(MINUTE)))
    await attempted(backend.store, sent(), limit=1)
    await claimed(backend.store, limit=1)

    assert await backend.reading.depths() == [
        Depth(EMAIL, unfinished=4, in_flight=1, oldest_due_at=since),
        Depth(TASK, unfinished=1, in_flight=0, oldest_due_at=None),
    ]


async def test_longest_waiting_is_found_behind_the_urgent(
    backend: Backend, clock: StoreClock
) -> None:
    """Priorities come before due times in a tenant's queue, parked jobs are elsewhere."""
    due = clock.at(MINUTE)
    await accepted(backend.store, a_message(priority=9, due=due))
    clock.advance(2 * MINUTE)
    await accepted(backend.store, a_message(priority=1))

    [depth] = await backend.reading.depths()

    assert depth.oldest_due_at == due


async def test_attempt_in_doubt_waits_since_its_hold_ended(
    backend: Backend, clock: StoreClock
) -> None:
    """It is not in flight any more."""
    await accepted(backend.store, a_message())
    await claimed_and_declared(backend.store)
    clock.advance(2 * HOLD)

    [depth] = await backend.reading.depths()

    assert (depth.unfinished, depth.in_flight) == (1, 0)
    assert depth.oldest_due_at == clock.at(-HOLD)


async def test_empty_store_has_no_depths(backend: Backend) -> None:
    """A kind is known by its jobs; one whose jobs ended stays, with none."""
    before = await backend.reading.depths()
    await accepted(backend.store, a_message())
    await attempted(backend.store, sent())

    assert before == []
    assert await backend.reading.depths() == [Depth(EMAIL, 0, 0, None)]


async def test_states_are_counted_by_tenant(backend: Backend) -> None:
    """Or of all tenants together."""
    await accepted(backend.store, a_message(ACME))
    await attempted(backend.store, sent())
    await accepted(backend.store, a_message(ACME), *messages(2, BRASA))

    assert await backend.reading.states(tenant=ACME) == {State.SENT: 1, State.ENQUEUED: 1}
    assert await backend.reading.states() == {State.SENT: 1, State.ENQUEUED: 3}

"""Store, timely: a parked job comes back when its time has come, also after a step of the clock."""

from datetime import timedelta

import pytest

from carteiro.model import EMAIL, ZERO
from carteiro.ports import Backend, Store
from support.builders import BRASA, TASK, a_message, a_task, a_tenant, messages, retry, sent
from support.clock import MILLISECOND, StoreClock, past
from support.steps import (
    HOLD,
    LEASE,
    accepted,
    attempted,
    claim,
    claimed,
    claimed_alone,
    claimed_and_declared,
    claimed_ids,
    settled,
)

SECOND = timedelta(seconds=1)


async def test_scheduled_message_comes_when_it_is_due(store: Store, clock: StoreClock) -> None:
    """Not a millisecond earlier; and the claim before has the sleep time."""
    [message] = await accepted(store, a_message(due=clock.at(5 * SECOND)))

    waiting = await claim(store)
    clock.advance(5 * SECOND - MILLISECOND)
    too_early = await claimed_ids(store)
    clock.advance(MILLISECOND)

    assert (waiting.jobs, waiting.idle_for) == ([], 5 * SECOND)
    assert too_early == []
    assert await claimed_ids(store) == [message]


async def test_retry_comes_back_after_its_delay(store: Store, clock: StoreClock) -> None:
    """The store adds its own now to the delay of the verdict."""
    [message] = await accepted(store, a_message())
    await attempted(store, retry(3 * SECOND))

    waiting = await claim(store)
    clock.advance(3 * SECOND)

    assert (waiting.jobs, waiting.idle_for) == ([], 3 * SECOND)
    assert await claimed_ids(store) == [message]


async def test_retry_without_a_delay_comes_back_at_once(store: Store) -> None:
    [message] = await accepted(store, a_message())
    await attempted(store, retry())

    assert await claimed_ids(store) == [message]


async def test_claim_has_the_time_until_the_next_event(store: Store, clock: StoreClock) -> None:
    """None without any work; zero while jobs are left; else the first event."""
    empty = await claim(store)
    await accepted(store, *messages(2), a_message(BRASA, due=clock.at(7 * SECOND)))
    partly = await claim(store, limit=1)
    fully = await claim(store)

    assert empty.idle_for is None
    assert partly.idle_for == ZERO
    assert fully.idle_for == 7 * SECOND


async def test_end_of_a_lease_is_waited_for(store: Store) -> None:
    """A sleeper wakes in time for the job of a worker that vanished."""
    await accepted(store, a_message())
    await claimed_alone(store)

    assert (await claim(store)).idle_for == LEASE


async def test_extended_lease_is_waited_for_no_longer_than_needed(
    store: Store, clock: StoreClock
) -> None:
    """A sleeper that wakes at the old end of an extended lease finds the new one."""
    await accepted(store, a_message())
    job = await claimed_alone(store)
    clock.advance(LEASE / 2)
    await store.extend([job.lease], lease=LEASE)

    clock.advance(LEASE / 2)
    answer = await claim(store)

    assert (answer.jobs, answer.idle_for) == ([], LEASE / 2)


async def test_hold_that_ends_before_the_lease_wakes_in_time(store: Store) -> None:
    """Declare moves the alarm as it moves the end."""
    await accepted(store, a_message())
    await claimed_and_declared(store, lease=timedelta(minutes=10))

    assert (await claim(store)).idle_for == HOLD


async def test_kinds_are_waited_for_separately(store: Store, clock: StoreClock) -> None:
    """A worker learns only of the kinds it claims."""
    await accepted(
        store, a_message(due=clock.at(9 * SECOND)), a_task(due=clock.at(2 * SECOND)), a_task()
    )

    emails = await claim(store)
    both = await claim(store, kinds=[EMAIL, TASK])
    none = await claim(store, kinds=[])

    assert emails.idle_for == 9 * SECOND
    assert [job.kind for job in both.jobs] == [TASK]
    assert both.idle_for == 2 * SECOND
    assert (none.jobs, none.idle_for) == ([], None)


async def test_new_job_wakes_a_sleeping_tenant_earlier(store: Store, clock: StoreClock) -> None:
    """The alarm of a tenant follows its first job, in any order of arrival."""
    await accepted(store, a_message(due=clock.at(9 * SECOND)))
    await claim(store)
    await accepted(store, a_message(due=clock.at(4 * SECOND)))

    assert (await claim(store)).idle_for == 4 * SECOND


async def test_more_than_a_page_of_due_jobs_comes_in_one_claim(
    store: Store, clock: StoreClock
) -> None:
    """A tenant readies its due jobs page by page, as it needs them."""
    expected = await accepted(store, *messages(100, due=clock.at(SECOND)))
    clock.advance(SECOND)

    got = await claimed_ids(store, limit=100)

    assert sorted(got) == expected


async def test_leap_of_the_clock_brings_all_due_jobs(store: Store, clock: StoreClock) -> None:
    """Scheduled jobs, retries and expired leases all come, none twice."""
    retried = await accepted(store, a_message())
    await attempted(store, retry(timedelta(hours=1)))
    leased = await accepted(store, a_message())
    await claimed_alone(store)
    scheduled = await accepted(store, a_message(due=clock.at(timedelta(hours=2))))

    clock.advance(timedelta(hours=3))

    assert sorted(await claimed_ids(store)) == sorted([*retried, *leased, *scheduled])


@pytest.mark.parametrize("is_declared", [True, False], ids=["declared", "claimed"])
async def test_lease_from_the_future_counts_as_expired(
    store: Store, clock: StoreClock, *, is_declared: bool
) -> None:
    """The clock steps back a day: a vanished worker's job must not wait a day."""
    [message] = await accepted(store, a_message(ttl=timedelta(days=9)))
    job = await (claimed_and_declared(store) if is_declared else claimed_alone(store))
    assert job.lease.job == message

    clock.back(timedelta(days=1))

    assert await claimed_ids(store) == [message]


async def test_lease_from_the_future_is_reaped(store: Store, clock: StoreClock) -> None:
    """Reap and claim agree on expiry."""
    [message] = await accepted(store, a_message())
    await claimed_alone(store)

    clock.back(timedelta(days=1))

    assert await store.reap(limit=10) == 1
    assert await claimed_ids(store) == [message]


async def test_small_step_back_only_lengthens_a_lease(store: Store, clock: StoreClock) -> None:
    """Within the longest hold a lease is believed: the job comes back at its end."""
    [message] = await accepted(store, a_message())
    await claimed_alone(store)

    clock.back(timedelta(minutes=5))
    believed = await claimed_ids(store)
    clock.advance(timedelta(minutes=5) + LEASE)

    assert believed == []
    assert await claimed_ids(store) == [message]


async def test_ready_work_is_claimed_after_a_step_back(store: Store, clock: StoreClock) -> None:
    """A message accepted before the step is ready, though its time seems to lie ahead."""
    expected = await accepted(store, *messages(2))
    clock.back(timedelta(days=1))
    before = await claimed_ids(store)
    new = await accepted(store, a_message())
    after = await claimed_ids(store)

    assert sorted([*before, *after]) == sorted([*expected, *new])


async def test_tenant_that_left_the_ring_is_found_again_after_a_step_back(
    backend: Backend, clock: StoreClock
) -> None:
    """Its alarm was set by the old clock; the first claim after the step looks at all tenants."""
    await backend.tenants.define([a_tenant(cap=1)])
    first, second = await accepted(backend.store, *messages(2))
    [job] = await claimed(backend.store)
    await claim(backend.store)

    clock.back(timedelta(days=1))
    got = await claimed_ids(backend.store)
    late = await settled(backend.store, job, sent())

    assert got == [first]
    assert late is not None
    assert second not in got


async def test_kind_of_other_workers_is_found_again_after_a_step_back(
    store: Store, clock: StoreClock
) -> None:
    """Another kind's claim sees its new message first, by the clock that stepped back."""
    await accepted(store, a_task())
    await settled(store, await claimed_alone(store, kinds=[TASK]), sent())
    await claim(store, kinds=[TASK])

    clock.back(5 * SECOND)
    expected = await accepted(store, a_task(), a_message())
    got = await claimed_ids(store, kinds=[EMAIL])
    clock.advance(4 * SECOND + SECOND / 2)
    got += await claimed_ids(store, kinds=[TASK])

    assert sorted(got) == sorted(expected)


async def test_work_seen_by_another_kinds_claim_is_ready_from_its_own_time_on(
    store: Store, clock: StoreClock
) -> None:
    """A small step back, to after it was accepted: the time of the first look does not matter."""
    [message] = await accepted(store, a_task())
    clock.advance(SECOND)
    await claim(store, kinds=[EMAIL])

    clock.back(SECOND / 2)

    assert await claimed_ids(store, kinds=[TASK]) == [message]


async def test_tenant_first_seen_after_a_step_back_is_served_at_once(
    backend: Backend, clock: StoreClock
) -> None:
    """The claim that notices the step looks at all tenants, new or old."""
    store = backend.store
    await backend.tenants.define([a_tenant(BRASA)])
    await accepted(store, a_message())
    await settled(store, await claimed_alone(store), sent())
    await claim(store)

    clock.back(5 * SECOND)
    [message] = await accepted(store, a_message(BRASA))

    assert await claimed_ids(store) == [message]


async def test_scheduled_message_keeps_its_time_through_a_step_back(
    store: Store, clock: StoreClock
) -> None:
    """Due at nine is due at nine, however often it gets there."""
    [message] = await accepted(store, a_message(due=clock.at(timedelta(hours=1))))
    await claim(store)

    clock.back(timedelta(hours=2))
    before = await claim(store)
    clock.advance(timedelta(hours=3))

    assert (before.jobs, before.idle_for) == ([], timedelta(hours=3))
    assert await claimed_ids(store) == [message]


async def test_claim_has_the_expiry_of_the_message(store: Store, clock: StoreClock) -> None:
    """The ttl counts from the due time, on the store's clock."""
    await accepted(store, a_message(due=clock.at(SECOND), ttl=10 * SECOND))

    clock.advance(3 * SECOND)

    assert (await claimed_alone(store)).expires_in == 8 * SECOND


async def test_reap_brings_back_expired_leases_and_no_waiting_job(
    store: Store, clock: StoreClock
) -> None:
    """A scheduled job is not reaped, though its time has come: it has no claim on it."""
    await accepted(store, a_message(due=clock.at(SECOND)))
    await accepted(store, a_message())
    await claimed_alone(store)

    clock.advance(past(LEASE))

    assert await store.reap(limit=10) == 1

"""Store, exclusive: at any moment at most one live lease exists for a job."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import EMAIL, ZERO, End, Late, Lease, LeasedJob, MessageId, Settled, State
from carteiro.ports import Backend, Store
from support.builders import (
    ACME,
    BRASA,
    TASK,
    a_message,
    a_task,
    a_tenant,
    dead,
    messages,
    sent,
    tenants_named,
)
from support.clock import MILLISECOND, StoreClock, past
from support.set_ups import PROPERTY, SetUp
from support.steps import (
    HOLD,
    LEASE,
    accepted,
    claimed,
    claimed_alone,
    claimed_and_declared,
    claimed_ids,
    settled,
)


async def test_leased_job_is_exclusive_until_the_lease_ends(
    store: Store, clock: StoreClock
) -> None:
    """The last moment of a lease is still its own; then the job is free."""
    [message] = await accepted(store, a_message())
    await claimed_alone(store)

    clock.advance(LEASE - MILLISECOND)
    too_early = await claimed_ids(store)
    clock.advance(MILLISECOND)
    in_time = await claimed_ids(store)

    assert too_early == []
    assert in_time == [message]


async def test_claim_half_taken_over_keeps_the_rest(store: Store, clock: StoreClock) -> None:
    """A job that was given back is not its own any more; the others of the same claim are."""
    await accepted(store, *messages(2))
    jobs = await claimed(store)
    clock.advance(LEASE)
    await store.reap(limit=1)

    extended = await store.extend([job.lease for job in jobs], lease=LEASE)
    got = await claimed_ids(store)

    assert sorted(extended) == [False, True]
    assert got == [job.lease.job for job, is_its in zip(jobs, extended, strict=True) if not is_its]


async def test_concurrent_claims_share_no_job(store: Store) -> None:
    """Many workers at once get all jobs, each job once."""
    expected = await accepted(store, *messages(60))

    answers = await asyncio.gather(*(claimed_ids(store, limit=7) for _ in range(12)))

    got = [job for answer in answers for job in answer]
    assert sorted(got) == expected


async def test_declared_attempt_is_exclusive_until_its_hold_ends(
    store: Store, clock: StoreClock
) -> None:
    """The hold replaces the lease: the end of the lease frees nothing."""
    [message] = await accepted(store, a_message())
    await claimed_and_declared(store)

    clock.advance(HOLD - MILLISECOND)
    assert await store.reap(limit=10) == 0
    assert await claimed_ids(store) == []
    clock.advance(MILLISECOND)
    assert await claimed_ids(store) == [message]


async def test_extended_lease_lives_on(store: Store, clock: StoreClock) -> None:
    """Extend counts from now, at any number of calls."""
    [message] = await accepted(store, a_message())
    job = await claimed_alone(store)

    for _ in range(3):
        clock.advance(LEASE / 2)
        assert await store.extend([job.lease], lease=LEASE) == [True]
    clock.advance(LEASE - MILLISECOND)
    assert await claimed_ids(store) == []
    clock.advance(MILLISECOND)
    assert await claimed_ids(store) == [message]


async def test_extending_never_shortens(store: Store, clock: StoreClock) -> None:
    """A short extension does not change a longer hold."""
    await accepted(store, a_message())
    job = await claimed_and_declared(store)

    assert await store.extend([job.lease], lease=timedelta(seconds=1)) == [True]

    clock.advance(HOLD - MILLISECOND)
    assert await claimed_ids(store) == []


async def test_extended_hold_lives_on(backend: Backend, clock: StoreClock) -> None:
    """While a provider takes its time to answer, job and ledger agree on the holder of the message."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)

    for _ in range(3):
        clock.advance(HOLD - MILLISECOND)
        assert await backend.store.extend([job.lease], lease=HOLD) == [True]

    row = await backend.reading.message(message)
    assert row is not None
    assert row.held_until == clock.at(HOLD)
    assert isinstance(await settled(backend.store, job, sent()), Settled)


async def test_only_the_current_claim_extends_a_hold(backend: Backend, clock: StoreClock) -> None:
    """A worker that slept past its hold, and lost the job, gets a refusal from the ledger."""
    [message] = await accepted(backend.store, a_message())
    slow = await claimed_and_declared(backend.store)
    clock.advance(past(HOLD))
    await claimed_alone(backend.store)
    before = await backend.reading.message(message)

    assert await backend.store.extend([slow.lease], lease=HOLD) == [False]

    assert await backend.reading.message(message) == before


async def test_lost_or_settled_lease_cannot_be_extended(store: Store, clock: StoreClock) -> None:
    """Extend reports that the job was reassigned, and changes nothing."""
    [message] = await accepted(store, a_message())
    lost = await claimed_alone(store)
    clock.advance(past(LEASE))
    new = await claimed_alone(store)
    unknown = Lease(MessageId("no such job"), new.lease.claim)

    answers = await store.extend([lost.lease, new.lease, unknown], lease=LEASE)

    assert answers == [False, True, False]
    clock.advance(LEASE)
    assert await claimed_ids(store) == [message]


async def test_reaping_skips_live_leases(store: Store, clock: StoreClock) -> None:
    """Reap may run anywhere at any time: it readies expired ones, and nothing else."""
    old = await accepted(store, *messages(2))
    await claimed(store)
    clock.advance(LEASE / 2)
    await accepted(store, *messages(2))
    await claimed(store)

    clock.advance(LEASE / 2)
    reaped = [await store.reap(limit=1) for _ in range(3)]

    assert reaped == [1, 1, 0]
    assert await claimed_ids(store) == old


async def test_reaping_takes_the_first_expired_first(backend: Backend, clock: StoreClock) -> None:
    """Of any tenant and kind: a limit leaves none behind for long."""
    await backend.tenants.define([a_tenant(BRASA)])
    jobs = []
    for new in (a_message(BRASA), a_task(), a_message(), a_task(BRASA)):
        await accepted(backend.store, new)
        jobs += await claimed(backend.store, kinds=(EMAIL, TASK))
        clock.advance(MILLISECOND)
    clock.advance(LEASE)

    still_owned = []
    for _ in jobs:
        assert await backend.store.reap(limit=1) == 1
        extended = await backend.store.extend([each.lease for each in jobs], lease=ZERO)
        still_owned.append(extended)

    assert still_owned == [[each > reaped for each in range(4)] for reaped in range(4)]


_MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("claim"), st.integers(1, 4)),
        st.tuples(st.just("wait"), st.integers(1, 40)),
        st.tuples(st.just("extend"), st.integers(0, 5)),
        st.tuples(st.just("reap"), st.integers(1, 3)),
        st.tuples(st.just("release"), st.integers(0, 5)),
    ),
    max_size=25,
)


@PROPERTY
@given(moves=_MOVES)
async def test_job_is_never_leased_twice(set_up: SetUp, moves: Sequence[tuple[str, int]]) -> None:
    """With any actions of workers, a claim gets no job whose lease is live."""
    clock = StoreClock()
    async with set_up.opened(clock) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        await accepted(backend.store, *messages(4))
        await _play(backend.store, clock, moves)


async def _play(store: Store, clock: StoreClock, moves: Sequence[tuple[str, int]]) -> None:
    leases: list[Lease] = []
    ends: dict[MessageId, int] = {}
    for move, number in moves:
        if move == "claim":
            for job in await claimed(store, limit=number):
                assert ends.get(job.lease.job, 0) <= clock()
                ends[job.lease.job] = clock() + LEASE // MILLISECOND
                leases.append(job.lease)
        elif move == "wait":
            clock.advance(timedelta(seconds=number))
        elif move == "reap":
            await store.reap(limit=number)
        elif leases:
            lease = leases[number % len(leases)]
            is_extended = (await store.extend([lease], lease=LEASE)) == [True]
            if is_extended and move == "extend":
                ends[lease.job] = clock() + LEASE // MILLISECOND
            if is_extended and move == "release":
                await store.release([lease])
                ends[lease.job] = clock()


async def test_slow_job_outlives_the_others_of_its_claim(
    backend: Backend, clock: StoreClock
) -> None:
    """As long as it is extended, whatever became of the others: settled, released, pruned."""
    store = backend.store
    await accepted(store, *messages(4))
    slow, sent_one, dead_one, released = await claimed(store)
    await settled(store, sent_one, sent())
    await settled(store, dead_one, dead())
    await store.release([released.lease])
    for _ in range(5):
        clock.advance(LEASE - timedelta(seconds=1))
        assert await store.extend([slow.lease], lease=LEASE) == [True]
    await backend.upkeep.prune(bodies=timedelta(0), histories=timedelta(0))

    place = await backend.reading.place(slow.lease.job)
    [depth] = await backend.reading.depths()
    [other] = await claimed_ids(store)

    assert place is not None
    assert (place.is_claimed, place.tenant_in_flight) == (True, 1)
    assert (depth.unfinished, depth.in_flight) == (2, 1)
    assert other == released.lease.job
    assert await settled(store, slow, sent()) == Settled(State.SENT)


# --- many jobs of one claim -------------------------------------------------------------------


async def a_large_claim(store: Store) -> list[LeasedJob]:
    """One claim of three jobs of each of two tenants."""
    await accepted(store, *(a_task(tenant) for tenant in (ACME, BRASA) for _ in range(3)))
    jobs = await claimed(store, kinds=[TASK])
    assert len({job.lease.claim for job in jobs}) == 1
    return jobs


async def settle(store: Store, jobs: Sequence[LeasedJob]) -> list[Settled | Late]:
    """All of them are sent."""
    return await store.settle([End(job.lease, sent(), attempted=True) for job in jobs])


async def test_worker_killed_between_two_settles_of_a_claim_loses_only_the_rest(
    store: Store, clock: StoreClock
) -> None:
    """Settled jobs are gone, whatever else was claimed with them; the others come back once, and count as claimed."""
    jobs = await a_large_claim(store)
    await settle(store, [jobs[0], jobs[4]])

    clock.advance(past(LEASE))
    again = await claimed(store, kinds=[TASK])

    left = [job.lease.job for job in jobs if job not in (jobs[0], jobs[4])]
    assert sorted(job.lease.job for job in again) == sorted(left)
    assert {job.claims for job in again} == {2}
    assert await claimed_ids(store, kinds=[TASK]) == []


async def test_claim_half_taken_over_keeps_the_other_half(store: Store, clock: StoreClock) -> None:
    """Of one claim some jobs are extended: the others go to the next worker, and each settles its own."""
    jobs = await a_large_claim(store)
    kept, lost = jobs[::2], jobs[1::2]
    clock.advance(LEASE / 2)
    assert await store.extend([job.lease for job in kept], lease=LEASE) == [True] * 3

    clock.advance(LEASE / 2)
    taken = await claimed(store, kinds=[TASK])
    extended = await store.extend([job.lease for job in jobs], lease=LEASE)
    answers = await settle(store, jobs)
    others = await settle(store, taken)

    assert {job.lease.job for job in taken} == {job.lease.job for job in lost}
    assert extended == [job in kept for job in jobs]
    assert [isinstance(each, Settled) for each in answers] == [job in kept for job in jobs]
    assert [type(each) for each in others] == [Late] * 3  # the first result was recorded
    assert await claimed_ids(store, kinds=[TASK]) == []


async def test_slow_job_keeps_its_lease_after_the_others_of_its_claim_ended(
    backend: Backend, clock: StoreClock
) -> None:
    """It alone is in flight, for as long as it is extended."""
    store = backend.store
    slow, *quick = await a_large_claim(store)
    await settle(store, quick)

    for _ in range(4):
        clock.advance(LEASE / 2)
        assert await store.extend([slow.lease], lease=LEASE) == [True]
        assert await claimed_ids(store, kinds=[TASK]) == []
        assert await store.reap(limit=10) == 0
    in_flight = {each.tenant: each.in_flight for each in await backend.tenants.standings(TASK)}
    answers = await settle(store, [slow])

    assert in_flight == {slow.tenant: 1, quick[-1].tenant: 0}
    assert [type(each) for each in answers] == [Settled]


async def test_claim_without_jobs_means_nothing(store: Store, clock: StoreClock) -> None:
    """All its jobs ended, at once and in several settles: whatever is asked of it later, nothing comes back."""
    jobs = await a_large_claim(store)
    leases = [job.lease for job in jobs]
    await asyncio.gather(*(settle(store, [job]) for job in jobs))

    assert await store.extend(leases, lease=LEASE) == [False] * len(jobs)
    await store.release(leases)
    await store.undo_claims([leases[0].claim])
    clock.advance(past(LEASE))

    assert await store.reap(limit=10) == 0
    assert await claimed_ids(store, kinds=[TASK]) == []


async def test_job_that_is_settled_twice_in_a_list_takes_no_other_lease_along(
    store: Store, clock: StoreClock
) -> None:
    """The jobs of its claim that nobody settles are claimed again after their lease."""
    first, *others = await a_large_claim(store)
    answers = await settle(store, [first, first])
    last = [job for job in others if job.tenant == first.tenant][-1]
    await settle(store, [job for job in others if job != last])

    clock.advance(past(LEASE))

    assert isinstance(answers[0], Settled)
    assert await claimed_ids(store, kinds=[TASK]) == [last.lease.job]

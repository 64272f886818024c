"""Store, cautious: a job that keeps killing its workers is claimed alone, and is counted; an undone claim is not."""

from datetime import timedelta

from carteiro.model import EMAIL, MessageId, SendLimit, Settled
from carteiro.ports import Backend, Store
from support.builders import (
    ACME,
    BRASA,
    a_claim_id,
    a_message,
    a_tenant,
    messages,
    retry,
    sent,
)
from support.clock import StoreClock, past
from support.steps import (
    LEASE,
    accepted,
    attempted,
    claim,
    claimed,
    claimed_alone,
    claimed_ids,
    declare,
    settled,
)


async def _kills_two_workers(store: Store, clock: StoreClock, *, priority: int = 5) -> MessageId:
    [message] = await accepted(store, a_message(priority=priority))
    for _ in range(2):
        await claimed_alone(store)
        clock.advance(past(LEASE))
    return message


async def test_every_claim_without_an_end_is_counted(store: Store, clock: StoreClock) -> None:
    """The claimer gets the number, so that it can give up."""
    await accepted(store, a_message())

    counts = []
    for _ in range(4):
        counts.append((await claimed_alone(store)).claims)
        clock.advance(past(LEASE))

    assert counts == [1, 2, 3, 4]


async def test_suspect_is_claimed_alone(store: Store, clock: StoreClock) -> None:
    """A claim with a job that killed two workers has no other job."""
    suspect = await _kills_two_workers(store, clock, priority=1)
    innocent = await accepted(store, *messages(4))

    first = await claimed_ids(store)
    second = await claimed_ids(store)

    assert first == [suspect]
    assert second == innocent


async def test_suspect_in_mid_batch_waits_for_a_separate_claim(
    store: Store, clock: StoreClock
) -> None:
    """The claim ends before the suspect, also for other tenants: no innocent job shares its fate."""
    suspect = await _kills_two_workers(store, clock, priority=9)
    [innocent] = await accepted(store, a_message(priority=1))
    others = await accepted(store, *messages(2, BRASA))

    calls = [await claimed_ids(store) for _ in range(5)]

    assert [suspect] in calls
    assert sorted(job for call in calls for job in call) == sorted([suspect, innocent, *others])


async def test_delayed_suspect_keeps_its_turn(store: Store, clock: StoreClock) -> None:
    """Behind another's jobs it is the next to be claimed: it cannot be skipped for ever."""
    suspect = await _kills_two_workers(store, clock)
    await accepted(store, *messages(30, BRASA))

    calls = [await claimed_ids(store, limit=3) for _ in range(2)]

    assert [suspect] in calls


async def test_end_clears_the_suspicion(store: Store, clock: StoreClock) -> None:
    """A settled job did not kill its worker: the count starts again."""
    await _kills_two_workers(store, clock)
    await attempted(store, retry(timedelta(seconds=1)))
    clock.advance(timedelta(seconds=1))

    assert (await claimed_alone(store)).claims == 1


async def test_release_does_not_count(store: Store) -> None:
    """A released job does not become a suspect."""
    ids = await accepted(store, *messages(3))
    for _ in range(3):
        jobs = await claimed(store)
        await store.release([job.lease for job in jobs])

    assert await claimed_ids(store) == ids


async def test_harmless_suspect_delays_no_other(store: Store, clock: StoreClock) -> None:
    """After the suspect's own claim the rest goes on in full batches."""
    await _kills_two_workers(store, clock, priority=1)
    rest = await accepted(store, *messages(5))

    alone = await claimed_alone(store)
    await settled(store, alone, sent())

    assert await claimed_ids(store) == rest


async def test_suspect_costs_its_tenant_five_turns(store: Store, clock: StoreClock) -> None:
    """Each takes a separate claim: others have fifteen jobs for every one of them."""
    await accepted(store, *messages(4))
    for _ in range(2):
        assert len(await claimed(store)) == 4
        clock.advance(past(LEASE))
        await store.reap(limit=4)
    await accepted(store, *messages(60, BRASA))

    served = [job.tenant for _ in range(26) for job in await claimed(store, limit=3)]

    assert (served.count(ACME), served.count(BRASA)) == (4, 60)
    assert all(
        served[:last].count(BRASA) >= 15 * (served[:last].count(ACME) - 1) for last in range(64)
    )


# --- claims whose answer was lost ----------------------------------------------------------------


async def test_undone_claims_make_no_suspects(store: Store) -> None:
    """Claims whose answer was lost, undone by their ids: at once all jobs are claimed together, for the first time."""
    ids = await accepted(store, *messages(3), *messages(2, BRASA))
    for _ in range(3):
        lost = [a_claim_id(), a_claim_id()]
        for each in lost:
            await claim(store, claim_id=each, limit=3)
        await store.undo_claims(lost)

    jobs = await claimed(store)

    assert sorted(job.lease.job for job in jobs) == sorted(ids)
    assert {job.claims for job in jobs} == {1}


async def test_undone_claim_whose_lease_has_ended_is_not_counted(
    store: Store, clock: StoreClock
) -> None:
    """The store was unreachable for longer than a lease, and the jobs were not claimed since."""
    await accepted(store, a_message())
    lost = a_claim_id()
    await claim(store, claim_id=lost)
    clock.advance(past(LEASE))

    await store.undo_claims([lost])

    assert (await claimed_alone(store)).claims == 1


async def test_undone_claim_draws_nothing_from_limits(backend: Backend, clock: StoreClock) -> None:
    """Concurrency limit, rate and send limit are as if it had never been."""
    store = backend.store
    await backend.tenants.define([a_tenant(cap=2, rate_per_second=2.0)])
    await backend.tenants.limit(EMAIL, SendLimit(2, timedelta(seconds=10)))
    clock.advance(timedelta(seconds=1))
    await accepted(store, *messages(4))
    lost = a_claim_id()
    assert len((await claim(store, claim_id=lost)).jobs) == 2

    await store.undo_claims([lost])

    assert len(await claimed(store)) == 2


async def test_claim_is_undone_once(store: Store) -> None:
    """A repetition, or an unknown claim, changes nothing: also not for later holders of the jobs."""
    await accepted(store, *messages(2))
    lost = a_claim_id()
    await claim(store, claim_id=lost)
    await store.undo_claims([lost])
    jobs = await claimed(store)

    await store.undo_claims([lost, a_claim_id()])

    assert len(jobs) == 2
    assert await store.extend([job.lease for job in jobs], lease=LEASE) == [True, True]
    assert await claimed(store) == []


async def test_undoing_a_claim_leaves_reassigned_jobs_to_their_holder(
    store: Store, clock: StoreClock
) -> None:
    """The lease ended and others claimed them: their claims stand and count."""
    await accepted(store, a_message())
    lost = a_claim_id()
    await claim(store, claim_id=lost)
    clock.advance(past(LEASE))
    job = await claimed_alone(store)

    await store.undo_claims([lost])

    assert job.claims == 2
    assert await store.extend([job.lease], lease=LEASE) == [True]
    assert await claimed(store) == []


async def test_undoing_a_claim_spares_declared_attempts(store: Store) -> None:
    """A call may be in flight: it ends, or is in doubt when its hold ends."""
    await accepted(store, *messages(2))
    declared, claimed_only = await claimed(store)
    await declare(store, declared)

    await store.undo_claims([declared.lease.claim])

    assert await claimed_ids(store) == [claimed_only.lease.job]
    assert isinstance(await settled(store, declared, sent()), Settled)

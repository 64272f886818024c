"""Store, cautious: a job that keeps killing its workers is claimed alone, and is counted."""

from datetime import timedelta

from carteiro.model import MessageId
from carteiro.ports import Store
from support.builders import ACME, BRASA, a_message, messages, retry, sent
from support.clock import StoreClock, past
from support.steps import (
    LEASE,
    accepted,
    attempted,
    claimed,
    claimed_alone,
    claimed_ids,
    settled,
)


async def _kills_two_workers(store: Store, clock: StoreClock, *, priority: int = 5) -> MessageId:
    [message] = await accepted(store, a_message(priority=priority))
    for _ in range(2):
        await claimed_alone(store)
        clock.advance(past(LEASE))
    return message


async def test_every_claim_without_an_end_is_counted(store: Store, clock: StoreClock) -> None:
    """The claimer learns how often the job was claimed, so that it can give up."""
    await accepted(store, a_message())

    counts = []
    for _ in range(4):
        counts.append((await claimed_alone(store)).claims)
        clock.advance(past(LEASE))

    assert counts == [1, 2, 3, 4]


async def test_a_suspect_is_claimed_alone(store: Store, clock: StoreClock) -> None:
    """Whoever takes a job that killed two workers takes nothing else with it."""
    suspect = await _kills_two_workers(store, clock, priority=1)
    innocent = await accepted(store, *messages(4))

    first = await claimed_ids(store)
    second = await claimed_ids(store)

    assert first == [suspect]
    assert second == innocent


async def test_a_suspect_in_mid_batch_waits_for_a_claim_of_its_own(
    store: Store, clock: StoreClock
) -> None:
    """The claim ends before the suspect, also for other tenants: no innocent job shares its fate."""
    suspect = await _kills_two_workers(store, clock, priority=9)
    [innocent] = await accepted(store, a_message(priority=1))
    others = await accepted(store, *messages(2, BRASA))

    calls = [await claimed_ids(store) for _ in range(5)]

    assert [suspect] in calls
    assert sorted(job for call in calls for job in call) == sorted([suspect, innocent, *others])


async def test_a_suspect_does_not_take_a_turn_when_it_is_put_off(
    store: Store, clock: StoreClock
) -> None:
    """Put off behind another's jobs it is the next to be claimed: it cannot be passed over for ever."""
    suspect = await _kills_two_workers(store, clock)
    await accepted(store, *messages(30, BRASA))

    calls = [await claimed_ids(store, limit=3) for _ in range(2)]

    assert [suspect] in calls


async def test_an_end_clears_the_suspicion(store: Store, clock: StoreClock) -> None:
    """A job that was settled did not kill its worker: the count starts again."""
    await _kills_two_workers(store, clock)
    await attempted(store, retry(timedelta(seconds=1)))
    clock.advance(timedelta(seconds=1))

    assert (await claimed_alone(store)).claims == 1


async def test_a_release_does_not_count(store: Store) -> None:
    """Giving back is no way to become a suspect."""
    ids = await accepted(store, *messages(3))
    for _ in range(3):
        jobs = await claimed(store)
        await store.release([job.lease for job in jobs])

    assert await claimed_ids(store) == ids


async def test_a_suspect_that_behaves_holds_up_nobody(store: Store, clock: StoreClock) -> None:
    """After the suspect's own claim the rest goes on in full batches."""
    await _kills_two_workers(store, clock, priority=1)
    rest = await accepted(store, *messages(5))

    alone = await claimed_alone(store)
    await settled(store, alone, sent())

    assert await claimed_ids(store) == rest


async def test_a_suspect_costs_its_tenant_a_whole_turn(store: Store, clock: StoreClock) -> None:
    """Each takes a claim of its own: others have three jobs for every one of them."""
    await accepted(store, *messages(6))
    for _ in range(2):
        assert len(await claimed(store)) == 6
        clock.advance(past(LEASE))
        await store.reap(limit=6)
    await accepted(store, *messages(18, BRASA))

    served = [job.tenant for _ in range(12) for job in await claimed(store, limit=3)]

    assert (served.count(ACME), served.count(BRASA)) == (6, 18)
    assert all(
        served[:last].count(BRASA) >= 3 * (served[:last].count(ACME) - 1) for last in range(24)
    )

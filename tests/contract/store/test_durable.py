"""Store, durable: an answer is given after the commit; a new process on the same place sees it."""

from datetime import timedelta

import pytest

from carteiro.errors import StoreError
from carteiro.model import (
    EMAIL,
    Begun,
    CancelAnswer,
    EventType,
    Fairness,
    RedriveAnswer,
    Replayed,
    SendLimit,
    Settled,
    State,
)
from support.builders import (
    ACME,
    BRASA,
    a_message,
    a_tenant,
    dead,
    messages,
    retry,
    sent,
)
from support.clock import StoreClock, past
from support.set_ups import Place
from support.steps import (
    HOLD,
    LEASE,
    accepted,
    added_key,
    attempted,
    claimed,
    claimed_alone,
    claimed_and_declared,
    claimed_ids,
    claimed_tenants,
    declare,
    event_types,
    everything_about,
    key_holder,
    settled,
)


async def test_accepted_message_is_there_for_the_next_opener(place: Place) -> None:
    """It survives its process: readable, claimable and replayed."""
    new = a_message()
    async with place.opened() as first:
        await accepted(first.store, new)
        before = await everything_about(first, new.id)

    async with place.opened() as second:
        after = await everything_about(second, new.id)
        [answer] = await second.store.accept([new])
        found = await claimed_ids(second.store)

    assert after == before
    assert isinstance(answer, Replayed)
    assert found == [new.id]


async def test_lease_outlives_its_process(place: Place, clock: StoreClock) -> None:
    """A claimed job stays leased after a restart, and comes back when the lease runs out."""
    async with place.opened() as first:
        [message] = await accepted(first.store, a_message())
        await claimed_alone(first.store)

    async with place.opened() as second:
        too_early = await claimed(second.store)
        clock.advance(past(LEASE))
        in_time = await claimed_ids(second.store)

    assert too_early == []
    assert in_time == [message]


async def test_declared_attempt_is_found_open_after_a_crash(
    place: Place, clock: StoreClock
) -> None:
    """Declare is durable: the next claimer learns that an attempt may have been made."""
    async with place.opened() as first:
        await accepted(first.store, a_message())
        await claimed_and_declared(first.store)

    async with place.opened() as second:
        clock.advance(past(HOLD))
        job = await claimed_alone(second.store)

    assert job.open_attempt
    assert job.attempts == 1


async def test_claim_made_before_a_restart_still_settles(place: Place) -> None:
    """A claim belongs to its id, not to a connection."""
    async with place.opened() as first:
        [message] = await accepted(first.store, a_message())
        job = await claimed_alone(first.store)

    async with place.opened() as second:
        begun = await declare(second.store, job)
        answer = await settled(second.store, job, sent())
        types = await event_types(second, message)

    assert begun == Begun(1)
    assert answer == Settled(State.SENT)
    assert types[-1] is EventType.SENT


async def test_process_killed_between_two_settles_of_a_claim(
    place: Place, clock: StoreClock
) -> None:
    """Its settled jobs stay settled; the rest of its claim comes back, once, with the claim counted."""
    async with place.opened() as first:
        ids = await accepted(first.store, *messages(4))
        jobs = {job.lease.job: job for job in await claimed(first.store)}
        await settled(first.store, jobs[ids[0]], sent())
        await settled(first.store, jobs[ids[1]], retry(timedelta(hours=1)))

    clock.advance(past(LEASE))
    async with place.opened() as second:
        found = await claimed(second.store)
        late = await settled(second.store, jobs[ids[0]], sent())
        ends = [await settled(second.store, job, sent()) for job in found]
        left = await claimed(second.store)

    assert sorted((job.lease.job, job.claims) for job in found) == [(ids[2], 2), (ids[3], 2)]
    assert late == Settled(State.SENT)
    assert ends == [Settled(State.SENT)] * 2
    assert left == []


async def test_verdicts_are_there_for_the_next_opener(place: Place, clock: StoreClock) -> None:
    """State, events, queue and dead letter of every verdict survive together."""
    async with place.opened() as first:
        lives = []
        for verdict in (sent(), retry(timedelta(minutes=1)), dead()):
            lives += await accepted(first.store, a_message())
            await attempted(first.store, verdict)
        before = [await everything_about(first, each) for each in lives]

    async with place.opened() as second:
        after = [await everything_about(second, each) for each in lives]
        clock.advance(timedelta(minutes=1))
        found = await claimed_ids(second.store)

    assert after == before
    assert found == [lives[1]]


async def test_cancel_and_redrive_are_there_for_the_next_opener(place: Place) -> None:
    """Requests of people are as durable as results of workers."""
    async with place.opened() as first:
        [buried] = await accepted(first.store, a_message())
        await attempted(first.store, dead())
        [waiting] = await accepted(first.store, a_message())
        answers = (
            await first.store.cancel([waiting], tenant=ACME),
            await first.dead_letters.redrive([buried], by="ana"),
        )

    async with place.opened() as second:
        found = await claimed_ids(second.store)

    assert answers == ([CancelAnswer.CANCELLED], [RedriveAnswer.REDRIVEN])
    assert found == [buried]


async def test_virtual_time_outlives_the_process(place: Place) -> None:
    """A restart gives no tenant a second first turn."""
    async with place.opened() as first:
        await accepted(first.store, *messages(6, ACME), *messages(6, BRASA))
        before = await claimed_tenants(first.store, limit=3)

    async with place.opened() as second:
        after = await claimed_tenants(second.store, limit=6)

    assert before + after == [ACME] * 3 + [BRASA] * 3 + [ACME] * 3


async def test_shares_and_settings_are_there_for_the_next_opener(place: Place) -> None:
    """Tenants, tiers, keys, limits and tuned fairness survive."""
    tenant = a_tenant(
        name="Acme Ltda", tier="gold", weight=2.0, cap=7, rate_per_second=3.0, paused=True
    )
    async with place.opened() as first:
        await first.tenants.weigh_tier("gold", 3.0)
        await first.tenants.define([tenant])
        await added_key(first, "key of acme")
        await first.tenants.tune(Fairness(max_jobs_per_tenant_batch=1))
        await first.tenants.limit(EMAIL, SendLimit(2, timedelta(minutes=1)))
        await first.tenants.define([a_tenant("carol"), a_tenant("dora")])
        await accepted(first.store, *messages(3, "carol"), *messages(3, "dora"))

    async with place.opened() as second:
        [found] = await second.tenants.find([ACME])
        owner = await key_holder(second, "key of acme")
        served = await claimed_tenants(second.store)

    assert found == tenant
    assert owner == ACME
    assert served == ["carol", "dora"]


async def test_two_openers_see_each_others_commits_at_once(place: Place) -> None:
    """An answer given by one process is the truth for every other."""
    async with place.opened() as one, place.opened() as other:
        [message] = await accepted(one.store, a_message())
        job = await claimed_alone(other.store)
        held_by_other = await claimed(one.store)
        await settled(one.store, job, sent())
        row = await other.reading.message(message)

    assert held_by_other == []
    assert row is not None
    assert row.state is State.SENT


async def test_empty_accept_checks_that_the_store_is_writable(place: Place) -> None:
    """The answer comes from the store itself."""
    async with place.opened() as opened:
        nothing = await opened.store.accept([])
        states = await opened.reading.states()

    assert (nothing, states) == ([], {})
    with pytest.raises(StoreError):  # it is closed
        await opened.store.accept([])

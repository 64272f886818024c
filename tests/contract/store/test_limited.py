"""Store, limited: caps, rates, pauses and the send limit hold, cost others nothing, and end by themselves."""

import random
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from carteiro.model import EMAIL, Fairness, SendLimit, Tenant, TenantId, Verdict
from carteiro.policy.pacing import MOST_DRAWS
from carteiro.ports import Backend
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
from support.clock import MILLISECOND, StoreClock
from support.set_ups import Place
from support.steps import (
    HOLD,
    LEASE,
    accepted,
    claim,
    claimed,
    claimed_ids,
    claimed_tenants,
    declare,
    settled,
)

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
LONG = timedelta(minutes=50)
BOTH = (EMAIL, TASK)


# --- caps -------------------------------------------------------------------------------------


async def test_cap_bounds_the_jobs_in_flight(backend: Backend) -> None:
    """In one claim or in several, no more than the cap is leased."""
    await backend.tenants.define([a_tenant(cap=4)])
    await accepted(backend.store, *messages(20))

    got = [len(await claimed(backend.store, limit=limit)) for limit in (3, 100, 100)]

    assert got == [3, 1, 0]


async def test_cap_that_is_lowered_below_the_jobs_in_flight_stops_nobody_else(
    backend: Backend,
) -> None:
    """The tenant waits until enough of them have ended; the others are served."""
    await accepted(backend.store, *messages(8))
    jobs = await claimed(backend.store, limit=6)
    await backend.tenants.define([a_tenant(cap=2)])
    await accepted(backend.store, *messages(3, BRASA))

    meanwhile = await claimed_tenants(backend.store)
    for job in jobs[:4]:
        await declare(backend.store, job)
        await settled(backend.store, job, sent())
    at_the_cap = await claimed_ids(backend.store)
    await declare(backend.store, jobs[4])
    await settled(backend.store, jobs[4], sent())

    assert meanwhile == [BRASA] * 3
    assert at_the_cap == []
    assert len(await claimed_ids(backend.store)) == 1


async def test_cap_costs_others_nothing(backend: Backend) -> None:
    """While one tenant is at its cap the others get the whole batch."""
    await backend.tenants.define([a_tenant(cap=2)])
    await accepted(backend.store, *messages(20), *messages(20, BRASA))

    served = Counter(await claimed_tenants(backend.store, limit=15))

    assert served == {ACME: 2, BRASA: 13}


async def test_cap_counts_all_kinds_together(backend: Backend) -> None:
    """The slots are the tenant's, for every kind."""
    await backend.tenants.define([a_tenant(cap=2)])
    await accepted(backend.store, *messages(2), a_task(), a_task())

    tasks = await claimed(backend.store, kinds=[TASK], limit=1)
    emails = await claimed(backend.store, kinds=[EMAIL])
    more = await claimed(backend.store, kinds=BOTH)

    assert [len(tasks), len(emails), len(more)] == [1, 1, 0]


@pytest.mark.parametrize(
    "verdict", [sent(), retry(timedelta(hours=1)), dead()], ids=["sent", "retry", "dead"]
)
async def test_settled_job_frees_its_slot_at_once(backend: Backend, verdict: Verdict) -> None:
    """The next claim fills the slot, after any verdict."""
    await backend.tenants.define([a_tenant(cap=1)])
    _, second = await accepted(backend.store, *messages(2))
    [job] = await claimed(backend.store)

    await settled(backend.store, job, verdict)

    assert await claimed_ids(backend.store) == [second]


async def test_slot_freed_by_one_kind_is_open_to_the_others(backend: Backend) -> None:
    """A tenant that waits at its cap for one kind wakes when another kind's job ends."""
    await backend.tenants.define([a_tenant(cap=1)])
    await accepted(backend.store, a_task())
    [email] = await accepted(backend.store, a_message())
    [task] = await claimed(backend.store, kinds=[TASK])
    assert await claimed(backend.store) == []

    await settled(backend.store, task, sent(), attempted=True)

    assert await claimed_ids(backend.store) == [email]


async def test_attempt_keeps_its_slot_for_as_long_as_it_is_held(
    backend: Backend, clock: StoreClock
) -> None:
    """Longer than its job was leased: until then nobody else takes the job or the slot, of whatever kind."""
    await backend.tenants.define([a_tenant(cap=1)])
    await accepted(backend.store, a_message(), a_message(), a_task())
    [job] = await claimed(backend.store, limit=1)
    await declare(backend.store, job)
    clock.advance(LEASE + SECOND)

    reaped = await backend.store.reap(limit=10)
    tasks, emails = [await claimed(backend.store, kinds=[kind]) for kind in (TASK, EMAIL)]
    [standing] = await backend.tenants.standings(EMAIL)
    in_flight = sum(each.in_flight for each in await backend.reading.depths())
    clock.advance(HOLD - LEASE)
    [again] = await claimed(backend.store, limit=1)

    assert (reaped, tasks, emails) == (0, [], [])
    assert (standing.in_flight, in_flight) == (1, 1)
    assert again.lease.job == job.lease.job
    assert again.open_attempt


async def test_released_or_cancelled_job_frees_its_slot(backend: Backend) -> None:
    """A slot belongs to a job in flight, and to nothing else."""
    await backend.tenants.define([a_tenant(cap=1)])
    first, second = await accepted(backend.store, *messages(2))
    [job] = await claimed(backend.store)

    await backend.store.release([job.lease])
    again = await claimed_ids(backend.store)
    await backend.store.cancel([first], tenant=ACME)
    after_cancel = await claimed_ids(backend.store)

    assert again == [first]
    assert after_cancel == [second]


@pytest.mark.parametrize("is_reaped", [True, False], ids=["reaped", "not reaped"])
async def test_vanished_worker_leaks_no_slot(
    backend: Backend, clock: StoreClock, *, is_reaped: bool
) -> None:
    """Slots are counted from live leases: when a lease ends its slot is free, with or without reap."""
    await backend.tenants.define([a_tenant(cap=2)])
    ids = await accepted(backend.store, *messages(4))
    await claimed(backend.store)
    waiting = await claim(backend.store)

    clock.advance(LEASE)
    if is_reaped:
        await backend.store.reap(limit=10)

    assert waiting.jobs == []
    assert waiting.idle_for == LEASE
    assert await claimed_ids(backend.store) == ids[:2]


async def test_hold_keeps_its_slot_while_it_lasts(backend: Backend, clock: StoreClock) -> None:
    """A declared attempt is in flight until it is settled or its hold ends."""
    await backend.tenants.define([a_tenant(cap=1)])
    await accepted(backend.store, *messages(2))
    [job] = await claimed(backend.store)
    await declare(backend.store, job)

    clock.advance(HOLD - MILLISECOND)
    held = await claimed(backend.store)
    clock.advance(MILLISECOND)
    free = await claimed(backend.store)

    assert held == []
    assert len(free) == 1


async def test_slot_held_by_another_kind_is_waited_for(backend: Backend, clock: StoreClock) -> None:
    """The lease that fills the cap is of another kind; its end is still the time of the next claim."""
    await backend.tenants.define([a_tenant(cap=1)])
    await accepted(backend.store, a_task())
    [email] = await accepted(backend.store, a_message())
    await claimed(backend.store, kinds=[TASK])

    waiting = await claim(backend.store)
    clock.advance(LEASE)

    assert (waiting.jobs, waiting.idle_for) == ([], LEASE)
    assert await claimed_ids(backend.store) == [email]


@pytest.mark.parametrize(
    ("limit", "wait"),
    [({"cap": 1}, LEASE - SECOND), ({"rate_per_second": 0.1}, 9 * SECOND)],
    ids=["cap", "rate"],
)
async def test_due_jobs_do_not_keep_a_limited_tenant_awake(
    backend: Backend, clock: StoreClock, limit: dict[str, float], wait: timedelta
) -> None:
    """Newly due work of a limited tenant causes no claim before the limit ends."""
    await backend.tenants.define([a_tenant(ACME, **limit)])
    await accepted(backend.store, a_message(), a_message(due=clock.at(SECOND)))
    await claimed(backend.store)
    clock.advance(SECOND)

    answer = await claim(backend.store)

    assert (answer.jobs, answer.idle_for) == ([], wait)


# --- rates ------------------------------------------------------------------------------------


async def test_rate_allows_one_seconds_worth_at_once_and_then_its_pace(
    backend: Backend, clock: StoreClock
) -> None:
    """Two a second: two now, then one every half second, and the claim says when."""
    await backend.tenants.define([a_tenant(rate_per_second=2.0)])
    await accepted(backend.store, *messages(10))

    got, waits = [], []
    for _ in range(4):
        answer = await claim(backend.store)
        assert answer.idle_for is not None
        got.append(len(answer.jobs))
        waits.append(answer.idle_for)
        clock.advance(answer.idle_for)

    assert got == [2, 1, 1, 1]
    assert waits == [SECOND / 2] * 4


async def test_rate_below_one_a_second_still_allows_one(
    backend: Backend, clock: StoreClock
) -> None:
    """One in four seconds: one now, the next after four seconds."""
    await backend.tenants.define([a_tenant(rate_per_second=0.25)])
    await accepted(backend.store, *messages(3))

    first = await claim(backend.store)
    clock.advance(4 * SECOND - MILLISECOND)
    too_early = await claimed(backend.store)
    clock.advance(MILLISECOND)
    second = await claimed(backend.store)

    assert len(first.jobs) == 1
    assert first.idle_for == 4 * SECOND
    assert too_early == []
    assert len(second) == 1


async def test_unused_tokens_do_not_pile_up(backend: Backend, clock: StoreClock) -> None:
    """After an hour of silence there is still only one second's worth."""
    await backend.tenants.define([a_tenant(rate_per_second=3.0)])
    await accepted(backend.store, *messages(20))
    await claimed(backend.store)

    clock.advance(timedelta(hours=1))

    assert len(await claimed(backend.store, lease=timedelta(minutes=1))) == 3


async def test_rate_counts_all_kinds_together_and_costs_others_nothing(backend: Backend) -> None:
    """The tokens are the tenant's; another tenant gets the rest of the batch."""
    await backend.tenants.define([a_tenant(rate_per_second=2.0)])
    tasks = [a_task() for _ in range(5)]
    await accepted(backend.store, *messages(5), *tasks, *messages(10, BRASA))

    served = Counter(await claimed_tenants(backend.store, kinds=BOTH, limit=10))

    assert served == {ACME: 2, BRASA: 8}


async def test_release_gives_the_token_back(backend: Backend) -> None:
    """A released job was never sent."""
    await backend.tenants.define([a_tenant(rate_per_second=1.0)])
    await accepted(backend.store, *messages(2))
    [job] = await claimed(backend.store)
    assert await claimed(backend.store) == []

    await backend.store.release([job.lease])

    assert len(await claimed(backend.store)) == 1


async def test_clock_that_steps_back_does_not_stop_a_limited_tenant(
    backend: Backend, clock: StoreClock
) -> None:
    """A token due far ahead is a clock error: the wait is never longer than the pace."""
    await backend.tenants.define([a_tenant(rate_per_second=1.0)])
    await accepted(backend.store, *messages(5))
    await claimed(backend.store, lease=SECOND)

    clock.back(timedelta(days=1))
    await claim(backend.store)
    clock.advance(2 * SECOND)

    assert len(await claimed(backend.store)) == 1


# --- pauses -----------------------------------------------------------------------------------


async def test_paused_tenant_is_not_served_and_costs_others_nothing(backend: Backend) -> None:
    """Neither its backlog nor new jobs are claimed; the others go on."""
    await accepted(backend.store, *messages(5), *messages(5, BRASA))
    assert len(await claimed(backend.store, limit=3)) == 3

    await backend.tenants.define([a_tenant(paused=True)])
    await accepted(backend.store, *messages(5))
    served = Counter(await claimed_tenants(backend.store))

    assert served == {BRASA: 5}


async def test_pause_alone_has_no_sleep_time(backend: Backend) -> None:
    """Only a resume ends a pause, and a resume wakes: there is no time to sleep until."""
    await accepted(backend.store, *messages(5))
    await backend.tenants.define([a_tenant(paused=True)])

    answer = await claim(backend.store)

    assert answer.jobs == []
    assert answer.idle_for is None


async def test_jobs_in_flight_at_a_pause_still_settle(backend: Backend) -> None:
    """A pause stops claims, not ends; a failed job waits for the resume."""
    await accepted(backend.store, *messages(2))
    done, failed = await claimed(backend.store)
    await backend.tenants.define([a_tenant(paused=True)])

    await settled(backend.store, done, sent())
    await settled(backend.store, failed, retry())
    paused = await claimed(backend.store)
    await backend.tenants.define([a_tenant()])

    assert paused == []
    assert await claimed_ids(backend.store) == [failed.lease.job]


async def test_resumed_tenant_has_no_credit_for_its_absence(backend: Backend) -> None:
    """After the pause it takes turns like the others, and does not catch up."""
    await accepted(backend.store, *messages(60), *messages(60, BRASA))
    await backend.tenants.define([a_tenant(paused=True)])
    await claimed(backend.store, limit=30)

    await backend.tenants.define([a_tenant()])
    served = Counter(await claimed_tenants(backend.store, limit=30))

    assert served == {ACME: 15, BRASA: 15}


# --- the send limit ---------------------------------------------------------------------------


async def test_send_limit_is_shared_by_all_claims(backend: Backend, clock: StoreClock) -> None:
    """Six a minute: six at once by any claimers, then none for a minute, to the millisecond."""
    await backend.tenants.limit(EMAIL, SendLimit(6, MINUTE))
    await accepted(backend.store, *messages(10), *messages(10, BRASA))

    got = [len(await claimed(backend.store, limit=4)) for _ in range(3)]
    blocked = await claim(backend.store)
    clock.advance(MINUTE - MILLISECOND)
    too_early = await claimed(backend.store)
    clock.advance(MILLISECOND)
    after_a_wait = await claim(backend.store)

    assert got == [4, 2, 0]
    assert blocked.idle_for == MINUTE
    assert too_early == []
    assert len(after_a_wait.jobs) == 6
    assert after_a_wait.idle_for == MINUTE


@pytest.mark.parametrize("seed", range(3))
async def test_period_never_holds_more_than_the_send_limit(
    backend: Backend, clock: StoreClock, seed: int
) -> None:
    """With any claims and releases: never more than the count in any period of its length."""
    chance = random.Random(seed)
    limit = SendLimit(7, 10 * SECOND)
    await backend.tenants.limit(EMAIL, limit)
    await accepted(backend.store, *messages(150))
    starts: list[datetime] = []

    for _ in range(60):
        clock.advance(chance.randrange(2500) * MILLISECOND)
        jobs = await claimed(backend.store, limit=chance.randrange(1, 6), lease=LONG)
        given_back = [job.lease for job in jobs if chance.random() < 0.2]
        starts += [clock.at()] * (len(jobs) - len(given_back))
        clock.advance(chance.randrange(200) * MILLISECOND)
        await backend.store.release(given_back)

    assert len(starts) > 40
    assert _most_in_a_span(starts, limit.per) <= limit.count


@pytest.mark.parametrize("limit", [SendLimit(7, 10 * SECOND), SendLimit(130, 10 * SECOND)])
async def test_full_send_limit_is_reached(
    backend: Backend, clock: StoreClock, limit: SendLimit
) -> None:
    """With work waiting and claims at the announced times: the whole count in every period, and never more."""
    await backend.tenants.limit(EMAIL, limit)
    await accepted(backend.store, *messages(5 * limit.count))
    starts: list[datetime] = []

    end = clock.at(4 * limit.per)
    while clock.at() < end:
        answer = await claim(backend.store, limit=5, lease=LONG)
        starts += [clock.at()] * len(answer.jobs)
        assert answer.idle_for is not None
        clock.advance(max(answer.idle_for, MILLISECOND))

    assert _most_in_a_span(starts, limit.per) == limit.count
    assert len(starts) == 4 * limit.count


async def test_each_draw_ends_one_period_after_it_was_made(
    backend: Backend, clock: StoreClock
) -> None:
    """Four now and two in ten seconds: the next four after a minute; of a smaller limit, the next after both."""
    await backend.tenants.limit(EMAIL, SendLimit(6, MINUTE))
    await accepted(backend.store, *messages(20))
    await claimed(backend.store, limit=4)
    clock.advance(10 * SECOND)
    last = await claim(backend.store)
    await backend.tenants.limit(EMAIL, SendLimit(2, MINUTE))
    smaller = await claim(backend.store)
    await backend.tenants.limit(EMAIL, SendLimit(6, MINUTE))
    clock.advance(50 * SECOND)

    assert (len(last.jobs), last.idle_for) == (2, 50 * SECOND)
    assert (smaller.jobs, smaller.idle_for) == ([], MINUTE)
    assert len(await claimed(backend.store)) == 4


@pytest.mark.parametrize(
    ("count", "wait"),
    [(MOST_DRAWS, 9_950 * MILLISECOND), (MOST_DRAWS + 1, 10_000 * MILLISECOND)],
)
async def test_close_draws_of_a_large_send_limit_end_together(
    backend: Backend, clock: StoreClock, count: int, wait: timedelta
) -> None:
    """Up to a hundred are separate; beyond, those of a hundredth of the period end with the last: few are kept."""
    await backend.tenants.limit(EMAIL, SendLimit(count, 10 * SECOND))
    await accepted(backend.store, *messages(count + 1))
    await claimed(backend.store, limit=1)
    clock.advance(50 * MILLISECOND)

    answer = await claim(backend.store, limit=count)

    assert (len(answer.jobs), answer.idle_for) == (count - 1, wait)


async def test_draws_that_are_a_period_old_are_not_given_back(
    backend: Backend, clock: StoreClock
) -> None:
    """A release after the end of its draw frees nothing: later draws still count."""
    await backend.tenants.limit(EMAIL, SendLimit(2, 10 * SECOND))
    await accepted(backend.store, *messages(6))
    late = await claimed(backend.store, limit=2)
    clock.advance(10 * SECOND)
    assert len(await claimed(backend.store)) == 2

    await backend.store.release([job.lease for job in late])

    assert await claimed(backend.store) == []


async def test_new_send_limit_counts_draws_from_the_last(backend: Backend) -> None:
    """Two started in the last minute: of three a minute, one is left; of one, none."""
    await backend.tenants.limit(EMAIL, SendLimit(2, MINUTE))
    await accepted(backend.store, *messages(6))
    await claimed(backend.store)

    await backend.tenants.limit(EMAIL, SendLimit(1, MINUTE))
    fewer = await claim(backend.store)
    await backend.tenants.limit(EMAIL, SendLimit(3, MINUTE))

    assert (fewer.jobs, fewer.idle_for) == ([], MINUTE)
    assert len(await claimed(backend.store)) == 1


async def test_clock_that_steps_back_holds_a_send_limit_for_one_period(
    backend: Backend, clock: StoreClock
) -> None:
    """Draws that lie a day ahead count as drawn now: for a minute, and neither shorter nor longer."""
    await backend.tenants.limit(EMAIL, SendLimit(2, MINUTE))
    await accepted(backend.store, *messages(6))
    await claimed(backend.store, lease=SECOND)

    clock.back(timedelta(days=1))
    stepped = await claim(backend.store)
    clock.advance(MINUTE)

    assert (stepped.jobs, stepped.idle_for) == ([], MINUTE)
    assert len(await claimed(backend.store)) == 2


async def test_processes_share_a_send_limit(place: Place) -> None:
    """They draw from one count."""
    async with place.opened() as one, place.opened() as other:
        for each in (one, other):
            await each.tenants.limit(EMAIL, SendLimit(5, timedelta(hours=1)))
        await one.tenants.define([a_tenant()])
        await accepted(one.store, *messages(12))

        got = [len(await claimed(each.store, limit=2)) for each in (one, other, one, other)]

    assert got == [2, 2, 1, 0]


def _most_in_a_span(starts: Sequence[datetime], span: timedelta) -> int:
    """The most starts in any period; a period ends just before its length has passed."""
    return max(sum(first <= each < first + span for each in starts) for first in starts)


async def test_send_limit_of_one_kind_does_not_affect_the_others(backend: Backend) -> None:
    """A claim of several kinds gets the unlimited ones."""
    await backend.tenants.limit(EMAIL, SendLimit(1, timedelta(minutes=1)))
    await accepted(backend.store, *messages(5), *[a_task() for _ in range(5)])

    served = Counter(job.kind for job in await claimed(backend.store, kinds=BOTH))

    assert served == {EMAIL: 1, TASK: 5}


async def test_lifted_send_limit_does_not_limit(backend: Backend) -> None:
    """The whole backlog goes at once."""
    await backend.tenants.limit(EMAIL, SendLimit(1, timedelta(hours=1)))
    await accepted(backend.store, *messages(5))
    await claimed(backend.store)

    await backend.tenants.limit(EMAIL, None)

    assert len(await claimed(backend.store)) == 4


async def test_release_gives_the_send_limits_token_back(backend: Backend) -> None:
    """A released job was never sent."""
    await backend.tenants.limit(EMAIL, SendLimit(1, timedelta(hours=1)))
    await accepted(backend.store, *messages(2))
    [job] = await claimed(backend.store)

    await backend.store.release([job.lease])

    assert await claimed_ids(backend.store) == [job.lease.job]


async def test_send_limit_keeps_turns_fair(backend: Backend, clock: StoreClock) -> None:
    """Tenants delayed by the shared limit stay in the ring and take turns as tokens come."""
    await backend.tenants.limit(EMAIL, SendLimit(5, MINUTE))
    await accepted(backend.store, *messages(60), *messages(60, BRASA))
    served = Counter(await claimed_tenants(backend.store, lease=LONG))

    for _ in range(12):
        clock.advance(MINUTE)
        served.update(await claimed_tenants(backend.store, lease=LONG))

    assert sum(served.values()) == 65
    assert abs(served[ACME] - served[BRASA]) <= 3


async def test_empty_claim_uses_no_limit(backend: Backend) -> None:
    """A claim of no jobs draws no token and fills no slot."""
    await backend.tenants.define([a_tenant(cap=1, rate_per_second=1.0)])
    await accepted(backend.store, *messages(2))

    assert await claimed(backend.store, limit=0) == []
    assert len(await claimed(backend.store)) == 1


async def test_jobs_ahead_are_of_tenants_without_limits(backend: Backend) -> None:
    """A job that starts later must not draw on a cap or a rate now; the others are none the worse for it."""
    free, capped, paced = (TenantId(name) for name in ("free", "capped", "paced"))
    shares = [Tenant(free), Tenant(capped, cap=50), Tenant(paced, rate_per_second=50)]
    await backend.tenants.define(shares)
    for tenant in (free, capped, paced):
        await accepted(backend.store, *messages(20, tenant))

    first = Counter(await claimed_tenants(backend.store, limit=9, ahead=9))
    [*second] = await claimed_tenants(backend.store, limit=3)

    assert 9 <= first.total() <= 18
    assert first[capped] + first[paced] <= 9
    assert set(second) & {capped, paced}, "they kept their place in the ring"


async def test_jobs_ahead_are_of_kinds_without_a_send_limit(backend: Backend) -> None:
    """A send limit counts starts."""
    await backend.tenants.limit(EMAIL, SendLimit(100, timedelta(minutes=1)))
    await accepted(backend.store, *messages(20))

    assert len(await claimed(backend.store, limit=5, ahead=5)) == 5


async def test_jobs_by_age_of_kinds_with_limits_are_claimed_together(
    backend: Backend, clock: StoreClock
) -> None:
    """The oldest job may be of any tenant and kind, and every claim ends."""
    await backend.tenants.tune(Fairness(enable_round_robin=False))
    for kind in BOTH:
        await backend.tenants.limit(kind, SendLimit(3, MINUTE))
    for tenant in (BRASA, ACME):
        await accepted(backend.store, *messages(2, tenant), a_task(tenant), a_task(tenant))
        clock.advance(SECOND)

    jobs = await claimed(backend.store, kinds=BOTH)

    assert [job.tenant for job in jobs] == [BRASA] * 4 + [ACME] * 2
    assert Counter(job.kind for job in jobs) == {EMAIL: 3, TASK: 3}

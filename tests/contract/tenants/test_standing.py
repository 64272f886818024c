"""Tenants, standing: the fairness figures of a tenant are what its claims made them."""

from datetime import timedelta

import pytest

from carteiro.model import EMAIL, Fairness, Standing, TenantId
from carteiro.ports import Backend
from support.builders import (
    ACME,
    BRASA,
    TASK,
    a_message,
    a_task,
    a_tenant,
    messages,
    retry,
    sent,
)
from support.clock import StoreClock, past
from support.steps import LEASE, accepted, attempted, claimed, claimed_alone, declare, settled


async def _standing(backend: Backend, tenant: str) -> Standing:
    [found] = [each for each in await backend.tenants.standings(EMAIL) if each.tenant == tenant]
    return found


async def test_no_standing_without_work_or_history(backend: Backend) -> None:
    """A tenant has one once it had a job of the kind."""
    await accepted(backend.store, a_task())

    assert await backend.tenants.standings(EMAIL) == []
    assert [each.tenant for each in await backend.tenants.standings(TASK)] == [ACME]


async def test_standing_of_a_tenant_before_its_first_turn(backend: Backend) -> None:
    """Nothing processed yet: no time, no turn, the base priority."""
    await accepted(backend.store, *messages(2))

    assert await backend.tenants.standings(EMAIL) == [
        Standing(
            tenant=ACME,
            kind=EMAIL,
            last_processed_at=None,
            rounds_without_processing=0,
            current_priority=5,
            total_processed=0,
            consecutive_batch_count=0,
            waiting=2,
            in_flight=0,
        )
    ]


async def test_standings_of_some_tenants(backend: Backend) -> None:
    """The others are left out, and change nothing; an unknown one has none."""
    await accepted(backend.store, *messages(2), *messages(1, BRASA))

    found = await backend.tenants.standings(EMAIL, tenants=[BRASA, TenantId("nobody")])
    assert [(each.tenant, each.waiting) for each in found] == [(BRASA, 1)]
    assert await backend.tenants.standings(EMAIL, tenants=[]) == []


async def test_turn_is_counted(backend: Backend, clock: StoreClock) -> None:
    """Its time, its jobs, its consecutive jobs; waiting jobs and those in flight."""
    await accepted(backend.store, *messages(5))
    clock.advance(timedelta(seconds=1))
    await claimed(backend.store, limit=3)

    standing = await _standing(backend, ACME)

    assert standing.last_processed_at == clock.at()
    assert standing.total_processed == 3
    assert standing.consecutive_batch_count == 3
    assert (standing.waiting, standing.in_flight) == (2, 3)


async def test_tenant_alone_in_the_queue_takes_turns_of_the_usual_size(backend: Backend) -> None:
    """`consecutive_batch_count` is the jobs of its last turn, after any number of turns in a row."""
    await accepted(backend.store, *messages(20))
    shown = []
    for limit in (9, 2, 5):  # turns of 3, 3 and 3; of 2; of 3 and 2
        await claimed(backend.store, limit=limit)
        shown.append((await _standing(backend, ACME)).consecutive_batch_count)

    assert shown == [3, 2, 2]


async def test_turn_is_never_shown_as_larger_than_the_batch_size(backend: Backend) -> None:
    """Also where the size was larger when the turn was taken; without a turn it stays."""
    await backend.tenants.tune(Fairness(max_jobs_per_tenant_batch=5))
    await accepted(backend.store, *messages(5))
    await claimed(backend.store)
    before = await _standing(backend, ACME)

    await backend.tenants.tune(Fairness(max_jobs_per_tenant_batch=2))
    await claimed(backend.store)

    assert before.consecutive_batch_count == 5
    assert (await _standing(backend, ACME)).consecutive_batch_count == 2


async def test_rounds_do_not_move_while_a_tenant_has_no_work(backend: Backend) -> None:
    """Others take turns: a tenant that waits for none of them has the base priority."""
    await accepted(backend.store, a_message(), *messages(30, BRASA))
    await attempted(backend.store, sent(), limit=1)
    await claimed(backend.store, limit=24)

    standing = await _standing(backend, ACME)

    assert (standing.rounds_without_processing, standing.current_priority) == (0, 5)


async def test_rounds_count_from_the_turn_at_which_work_came(
    backend: Backend, clock: StoreClock
) -> None:
    """Turns of others before that do not count."""
    await backend.tenants.tune(Fairness(max_jobs_per_tenant_batch=1))
    await backend.tenants.define([a_tenant(weight=0.001)])
    await accepted(backend.store, a_message(), *messages(30, BRASA))
    await attempted(backend.store, sent(), limit=1)
    await claimed(backend.store, limit=10)

    await accepted(backend.store, *messages(2))
    await claimed(backend.store, limit=6)

    standing = await _standing(backend, ACME)
    assert (standing.rounds_without_processing, standing.current_priority) == (3, 2)


async def test_rounds_do_not_move_while_a_tenant_is_held(backend: Backend) -> None:
    """A pause comes from the operator, not from the turns of others; rounds count from zero after it."""
    await accepted(backend.store, *messages(3), *messages(30, BRASA))
    await backend.tenants.define([a_tenant(paused=True)])
    await claimed(backend.store, limit=24)
    paused = await _standing(backend, ACME)

    await backend.tenants.define([a_tenant()])
    await claimed(backend.store, limit=0)

    assert paused.rounds_without_processing == 0
    assert (await _standing(backend, ACME)).rounds_without_processing == 0


async def test_ended_jobs_leave_waiting_and_in_flight(backend: Backend, clock: StoreClock) -> None:
    """Sent is neither; a retry waits; an expired lease is no longer in flight; a live one is."""
    await accepted(backend.store, *messages(4))
    first, second, third, _ = await claimed(backend.store)
    await settled(backend.store, first, sent())
    await settled(backend.store, second, retry(timedelta(minutes=5)))
    await declare(backend.store, third)

    live = await _standing(backend, ACME)
    clock.advance(past(LEASE))
    later = await _standing(backend, ACME)

    assert (live.waiting, live.in_flight) == (1, 2)
    assert (later.waiting, later.in_flight) == (2, 1)
    assert live.total_processed == later.total_processed == 4


async def test_history_outlives_the_work(backend: Backend) -> None:
    """A tenant without jobs still has its figures."""
    await accepted(backend.store, a_message())
    await attempted(backend.store, sent())

    standing = await _standing(backend, ACME)

    assert (standing.waiting, standing.in_flight, standing.total_processed) == (0, 0, 1)


async def test_least_served_comes_first(backend: Backend) -> None:
    """The list is in the order of the next turns."""
    await accepted(backend.store, *messages(9, ACME), *messages(9, BRASA))
    await claimed(backend.store, limit=3)

    assert [each.tenant for each in await backend.tenants.standings(EMAIL)] == [BRASA, ACME]


@pytest.mark.parametrize(
    ("rounds", "priority"), [(0, 5), (1, 4), (2, 3), (3, 2), (4, 1), (5, 1), (100, 1)]
)
async def test_priority_rises_with_the_rounds_without_a_turn(
    backend: Backend, rounds: int, priority: int
) -> None:
    """Rounds are turns of others divided by the tenants in the ring: 0→5, 1→4, 2→3, 3→2, 4→1, 100→1."""
    await backend.tenants.tune(Fairness(max_jobs_per_tenant_batch=1))
    await backend.tenants.define([a_tenant(weight=0.001)])
    await accepted(backend.store, *messages(2, ACME), *messages(2 * rounds + 1, BRASA))
    await claimed(backend.store, limit=1)

    await claimed(backend.store, limit=2 * rounds, lease=timedelta(minutes=10))

    standing = await _standing(backend, ACME)
    assert standing.rounds_without_processing == rounds
    assert standing.current_priority == priority


async def test_shown_priority_follows_the_settings(backend: Backend) -> None:
    """Base, increment and the most urgent are settings."""
    await backend.tenants.tune(
        Fairness(
            max_jobs_per_tenant_batch=1,
            round_robin_base_priority=9,
            priority_increment_per_round=2,
            max_round_robin_priority=4,
        )
    )
    await backend.tenants.define([a_tenant(weight=0.001)])
    await accepted(backend.store, *messages(2, ACME), *messages(20, BRASA))
    await claimed(backend.store, limit=1)

    shown = []
    for _ in range(4):
        shown.append((await _standing(backend, ACME)).current_priority)
        await claimed(backend.store, limit=2)

    assert shown == [9, 7, 5, 4]


async def test_claim_of_one_kind_keeps_the_standing_of_others(backend: Backend) -> None:
    """Each kind has separate figures."""
    await accepted(backend.store, a_message(), a_task())
    await claimed_alone(backend.store)

    [task] = await backend.tenants.standings(TASK)

    assert (task.total_processed, task.waiting) == (0, 1)

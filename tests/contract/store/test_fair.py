"""Store, fair: tenants take turns. Its bound is tried in `test_fair_bound.py`."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import EMAIL, Fairness, MessageId, Tenant
from carteiro.ports import Backend
from support.builders import (
    ACME,
    BRASA,
    TASK,
    a_message,
    a_task,
    a_tenant,
    messages,
    tenants_named,
)
from support.clock import StoreClock
from support.set_ups import PROPERTY, SetUp
from support.steps import accepted, claimed, claimed_ids, claimed_tenants

LONG = timedelta(minutes=14)  # leases that outlive the test


async def _tenants_with_work(backend: Backend, *tenants: Tenant, each: int) -> None:
    await backend.tenants.define(tenants)
    await accepted(backend.store, *(new for tenant in tenants for new in messages(each, tenant.id)))


async def test_tenants_take_turns_of_three(backend: Backend) -> None:
    """A deep backlog waits for a small one, three jobs at a time."""
    await accepted(backend.store, *messages(50, ACME), *messages(6, BRASA))

    served = await claimed_tenants(backend.store, limit=15)

    assert served == [ACME] * 3 + [BRASA] * 3 + [ACME] * 3 + [BRASA] * 3 + [ACME] * 3


async def test_turns_go_on_from_claim_to_claim(backend: Backend) -> None:
    """Where one worker's claim ends another's begins: the tenant with less is next."""
    await accepted(backend.store, *messages(9, ACME), *messages(9, BRASA))

    served = [await claimed_tenants(backend.store, limit=limit) for limit in (2, 3, 3, 1)]

    assert served == [[ACME] * 2, [BRASA] * 3, [ACME] * 3, [BRASA]]


async def test_single_tenant_gets_the_whole_batch(backend: Backend) -> None:
    """Fairness costs nothing without others."""
    expected = await accepted(backend.store, *messages(50))

    assert await claimed_ids(backend.store, limit=50) == expected


async def test_newcomer_does_not_wait_behind_a_backlog(backend: Backend) -> None:
    """A tenant that enters the ring is served within one turn of each other tenant."""
    await accepted(backend.store, *messages(50, ACME))
    await claimed(backend.store, limit=30)
    await accepted(backend.store, a_message(BRASA))

    assert BRASA in await claimed_tenants(backend.store, limit=4)


async def test_absence_gives_no_credit(backend: Backend) -> None:
    """A tenant that was served little because it had no work does not catch up."""
    await accepted(backend.store, *messages(100, ACME), a_message(BRASA))
    await claimed(backend.store, limit=61)
    await accepted(backend.store, *messages(60, BRASA))

    assert Counter(await claimed_tenants(backend.store, limit=30)) == {ACME: 15, BRASA: 15}


async def test_leaving_and_returning_gives_no_second_first_turn(backend: Backend) -> None:
    """Virtual time is kept: coming and going with one job at a time gains nothing."""
    await accepted(backend.store, *messages(60, ACME))
    served: list[str] = []
    for _ in range(30):
        await accepted(backend.store, a_message(BRASA))
        served += await claimed_tenants(backend.store, limit=1)

    assert abs(Counter(served)[ACME] - Counter(served)[BRASA]) <= 3


@pytest.mark.parametrize(("weight", "share"), [(1.0, 30), (2.0, 40), (5.0, 50), (0.5, 20)])
async def test_weight_is_a_share(backend: Backend, weight: float, share: int) -> None:
    """A tenant of weight w gets w times the jobs of one of weight 1, up to one turn."""
    await _tenants_with_work(backend, a_tenant("a", weight=weight), a_tenant("b"), each=60)

    served = Counter(await claimed_tenants(backend.store, limit=60))

    assert abs(served["a"] - share) <= 3


async def test_change_of_weight_applies_at_once(backend: Backend) -> None:
    """The lead of a tenant counts at the new price: from the next turn on it gets its new share."""
    await _tenants_with_work(backend, a_tenant("a", weight=0.01), a_tenant("b"), each=90)
    first = await claimed_tenants(backend.store, limit=30)

    await backend.tenants.define([a_tenant("a", weight=1.0)])
    served = Counter(await claimed_tenants(backend.store, limit=30))

    assert Counter(first)["a"] <= 3
    assert abs(served["a"] - served["b"]) <= 6


async def test_ties_go_to_the_least_recently_served(backend: Backend) -> None:
    """Among equals, the one longest without a turn is next."""
    names = ["a", "b", "c"]
    await backend.tenants.define(tenants_named(names))
    await accepted(backend.store, *messages(9, "c"))
    await claimed(backend.store, limit=3)
    await accepted(backend.store, *messages(9, "a"), *messages(9, "b"))

    turns = [name for name, _ in groupby(await claimed_tenants(backend.store, limit=18))]

    assert turns == ["a", "b", "c", "a", "b", "c"]


async def test_kinds_claimed_together_share_one_virtual_time(backend: Backend) -> None:
    """A claim of several kinds merges them by least virtual time: no kind starves another."""
    emails, tasks = messages(30, ACME), [a_task(BRASA) for _ in range(30)]
    await accepted(backend.store, *emails, *tasks)

    jobs = await claimed(backend.store, kinds=[EMAIL, TASK], limit=30)

    assert Counter(job.kind for job in jobs) == {EMAIL: 15, TASK: 15}


async def test_other_kinds_are_not_claimed(backend: Backend) -> None:
    """A worker claims only the kinds that it knows."""
    await accepted(backend.store, a_task(), a_message())

    assert [job.kind for job in await claimed(backend.store, kinds=[EMAIL])] == [EMAIL]


async def test_size_of_a_turn_is_a_setting(set_up: SetUp, clock: StoreClock) -> None:
    """`max_jobs_per_tenant_batch`, as configured."""
    fairness = Fairness(max_jobs_per_tenant_batch=2)
    async with set_up.opened(clock, fairness=fairness) as backend:
        await _tenants_with_work(backend, a_tenant("a"), a_tenant("b"), each=4)

        assert await claimed_tenants(backend.store) == ["a", "a", "b", "b"] * 2


# --- plain first in, first out ----------------------------------------------------------------


@PROPERTY
@given(
    wishes=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.integers(-2, 2)),
        min_size=1,
        max_size=20,
    ),
    limits=st.lists(st.integers(1, 6), min_size=20, max_size=20),
)
async def test_order_without_round_robin_is_first_in_first_out(
    set_up: SetUp, wishes: Sequence[tuple[str, int, int]], limits: Sequence[int]
) -> None:
    """`enable_round_robin = false`: priority, due time, id; the tenant does not matter."""
    clock = StoreClock()
    async with set_up.opened(clock, fairness=Fairness(enable_round_robin=False)) as backend:
        await backend.tenants.define(tenants_named("abc"))
        expected = await _wished_for(backend, clock, wishes)
        clock.advance(timedelta(seconds=2))
        got = [job for limit in limits for job in await claimed_ids(backend.store, limit=limit)]

    assert got == expected


async def _wished_for(
    backend: Backend, clock: StoreClock, wishes: Sequence[tuple[str, int, int]]
) -> list[MessageId]:
    now = clock.at()
    new = [
        a_message(tenant, priority=priority, due=now + timedelta(seconds=offset))
        for tenant, priority, offset in wishes
    ]
    await accepted(backend.store, *new)
    ordered = sorted(new, key=lambda each: (each.priority, max(now, each.due or now), each.id))
    return [each.id for each in ordered]


async def test_limits_hold_without_round_robin(set_up: SetUp, clock: StoreClock) -> None:
    """First in, first out among those who may have more."""
    async with set_up.opened(clock, fairness=Fairness(enable_round_robin=False)) as backend:
        await _tenants_with_work(
            backend, a_tenant("a", cap=2), a_tenant("b", paused=True), a_tenant("c"), each=3
        )

        assert await claimed_tenants(backend.store) == ["a", "a", "c", "c", "c"]


async def test_turns_go_on_where_they_were_when_round_robin_comes_back(backend: Backend) -> None:
    """First in, first out costs no virtual time."""
    await accepted(backend.store, *messages(9, ACME), *messages(9, BRASA))
    await claimed(backend.store, limit=3)

    await backend.tenants.tune(Fairness(enable_round_robin=False))
    plain = await claimed_tenants(backend.store, limit=3)
    await backend.tenants.tune(None)
    fair = await claimed_tenants(backend.store, limit=3)

    assert plain == [ACME] * 3
    assert fair == [BRASA] * 3


# --- figures ----------------------------------------------------------------------------------


@PROPERTY
@given(
    moves=st.lists(
        st.one_of(
            st.tuples(st.just("come"), st.sampled_from("abcde")),
            st.tuples(st.just("turn"), st.just("")),
        ),
        min_size=5,
        max_size=30,
    )
)
async def test_order_at_equal_weights_agrees_with_the_shown_priority(
    set_up: SetUp, moves: Sequence[tuple[str, str]]
) -> None:
    """With full turns the next is always the one longest without a turn.

    None has a better priority, unless the next came into the ring later than that one: it waits since then.
    """
    async with set_up.opened(StoreClock()) as backend:
        await backend.tenants.define(tenants_named("abcde"))
        await accepted(backend.store, *messages(3, "a"), *messages(3, "b"))
        last_turn: dict[str, int] = {}
        waits_since: dict[str, int] = {}
        turns = 0
        for move, tenant in moves:
            if move == "come":
                await accepted(backend.store, *messages(3, tenant))
            else:
                turns += 1
                await _assert_next_turn_is_due(backend, last_turn, waits_since, turns)


async def _assert_next_turn_is_due(
    backend: Backend, last_turn: dict[str, int], waits_since: dict[str, int], number: int
) -> None:
    await claimed(backend.store, limit=0)  # lets those who came into the ring
    waiting = [each for each in await backend.tenants.standings(EMAIL) if each.waiting]
    served = await claimed_tenants(backend.store, limit=3, lease=LONG)
    if not waiting:
        assert served == []
        return
    [chosen] = set(served)
    assert last_turn.get(chosen, 0) == min(last_turn.get(each.tenant, 0) for each in waiting)
    since: dict[str, int] = {each.tenant: waits_since.get(each.tenant, number) for each in waiting}
    priorities: dict[str, int] = {each.tenant: each.current_priority for each in waiting}
    assert priorities[chosen] == min(
        priorities[each] for each in priorities if since[each] >= since[chosen]
    )
    waits_since.clear()
    waits_since.update(since | {chosen: number + 1})
    if next(each.waiting for each in waiting if each.tenant == chosen) == len(served):
        del waits_since[chosen]  # it has nothing left: later jobs wait from then on
    last_turn[chosen] = number


async def test_ten_thousand_tenants_take_turns(set_up: SetUp, clock: StoreClock) -> None:
    """One deep backlog among ten thousand small ones: every turn is another tenant's."""
    names = [f"tenant-{number:05}" for number in range(10_000)]
    async with set_up.opened(clock) as backend:
        await backend.tenants.define([a_tenant("greedy"), *tenants_named(names)])
        await accepted(backend.store, *messages(300, "greedy"))
        await accepted(backend.store, *(a_message(name) for name in names))

        served = [
            tenant
            for limit in (50, 1, 20)
            for tenant in await claimed_tenants(backend.store, limit=limit, lease=LONG)
        ]

    assert Counter(served).pop("greedy") <= 3
    assert len(served) == 71
    assert max(Counter(name for name in served if name != "greedy").values()) == 1

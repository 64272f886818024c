"""Tenants, shares: a change of weight, tier, cap, rate or pause acts on the waiting backlog at once."""

from collections import Counter
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

from carteiro.model import EMAIL, ApiLimits, Fairness, SendLimit, TenantId
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_tenant, messages
from support.steps import accepted, claim, claimed, claimed_tenants


async def _share_of_acme(backend: Backend, *, limit: int = 40) -> int:
    served = Counter(await claimed_tenants(backend.store, limit=limit))
    assert sum(served.values()) == limit
    return served[ACME]


async def _backlogs(backend: Backend, each: int = 100) -> None:
    await accepted(backend.store, *messages(each, ACME), *messages(each, BRASA))


async def test_tenant_is_found_as_it_was_defined(backend: Backend) -> None:
    """Every field comes back; a second definition replaces the first; an unknown one is None."""
    full = a_tenant(
        name="Acme Ltda", tier="gold", weight=2.5, cap=7, rate_per_second=0.5, paused=True
    )
    await backend.tenants.weigh_tier("gold", 3.0)
    await backend.tenants.define([full])

    first = await backend.tenants.find([BRASA, TenantId("nobody"), ACME])
    await backend.tenants.define([a_tenant(name="Acme")])
    second = await backend.tenants.find([ACME])

    assert first == [a_tenant(BRASA), None, full]
    assert second == [a_tenant(name="Acme")]


async def test_weight_applies_to_the_waiting_backlog(backend: Backend) -> None:
    """Raised or lowered, the next claim shows the new share."""
    await _backlogs(backend)
    even = await _share_of_acme(backend)

    await backend.tenants.define([a_tenant(weight=3.0)])
    raised = await _share_of_acme(backend)
    await backend.tenants.define([a_tenant(weight=1.0)])
    lowered = await _share_of_acme(backend)

    assert abs(even - 20) <= 3
    assert abs(raised - 30) <= 3
    assert abs(lowered - 20) <= 3


async def test_tier_gives_its_tenants_their_weight(backend: Backend) -> None:
    """Joining a tier, and a change of the tier's weight, apply at once."""
    await _backlogs(backend)
    await backend.tenants.weigh_tier("gold", 3.0)
    before = await _share_of_acme(backend)

    await backend.tenants.define([a_tenant(tier="gold")])
    joined = await _share_of_acme(backend)
    await backend.tenants.weigh_tier("gold", 1.0)
    lowered = await _share_of_acme(backend)

    assert abs(before - 20) <= 3
    assert abs(joined - 30) <= 3
    assert abs(lowered - 20) <= 3


async def test_own_weight_wins_over_the_tiers(backend: Backend) -> None:
    """The tier is for those who have none; removing the own weight falls back to the tier's."""
    await _backlogs(backend)
    await backend.tenants.weigh_tier("gold", 3.0)
    await backend.tenants.define([a_tenant(tier="gold", weight=1.0)])
    own = await _share_of_acme(backend)

    await backend.tenants.define([a_tenant(tier="gold")])
    tiers = await _share_of_acme(backend)

    assert abs(own - 20) <= 3
    assert abs(tiers - 30) <= 3


async def test_raised_cap_lets_more_through_at_once(backend: Backend) -> None:
    """The tenant waits at its cap; raising or lifting the cap wakes it, lowering it takes nothing back."""
    await backend.tenants.define([a_tenant(cap=1)])
    await accepted(backend.store, *messages(10))
    got = [len(await claimed(backend.store))]

    for cap in (3, 2, None):
        await backend.tenants.define([a_tenant(cap=cap)])
        got.append(len(await claimed(backend.store)))

    assert got == [1, 2, 0, 7]


async def test_changed_rate_applies_at_once(backend: Backend) -> None:
    """A new rate starts with a full bucket; without a rate there is none."""
    await backend.tenants.define([a_tenant(rate_per_second=1.0)])
    await accepted(backend.store, *messages(10))
    got = [len(await claimed(backend.store))]

    for rate in (3.0, None):
        await backend.tenants.define([a_tenant(rate_per_second=rate)])
        got.append(len(await claimed(backend.store)))

    assert got == [1, 3, 6]


async def test_repeated_definition_changes_nothing(backend: Backend) -> None:
    """It refills no bucket."""
    await backend.tenants.define([a_tenant(rate_per_second=1.0)])
    await accepted(backend.store, *messages(3))
    await claimed(backend.store)

    await backend.tenants.define([a_tenant(rate_per_second=1.0)])

    assert await claimed(backend.store) == []


async def test_pause_and_resume_apply_at_once(backend: Backend) -> None:
    """Between two claims: nothing while paused, everything after."""
    await accepted(backend.store, *messages(6))
    await backend.tenants.define([a_tenant(paused=True)])
    paused = await claim(backend.store)

    await backend.tenants.define([a_tenant()])
    resumed = await claim(backend.store)

    assert paused.jobs == []
    assert len(resumed.jobs) == 6


async def test_tuned_fairness_applies_at_once_and_can_be_reset(backend: Backend) -> None:
    """`tune` wins over the configured settings, `tune(None)` returns to them."""
    await _backlogs(backend)

    await backend.tenants.tune(Fairness(max_jobs_per_tenant_batch=1))
    tuned = await claimed_tenants(backend.store, limit=4)
    await backend.tenants.tune(None)
    configured = await claimed_tenants(backend.store, limit=6)

    assert tuned == [ACME, BRASA, ACME, BRASA]
    assert configured == [ACME] * 3 + [BRASA] * 3


async def test_fairness_in_force_says_if_it_was_tuned(backend: Backend) -> None:
    """Configured until it is tuned, and again after the reset."""
    tuned = Fairness(enable_round_robin=False, max_jobs_per_tenant_batch=1)
    configured = await backend.tenants.fairness()

    await backend.tenants.tune(tuned)
    changed = await backend.tenants.fairness()
    await backend.tenants.tune(None)

    assert configured == (Fairness(), False)
    assert changed == (tuned, True)
    assert await backend.tenants.fairness() == configured


async def _is_refused(asked: Awaitable[object]) -> bool:
    try:
        await asked
    except ValueError:
        return True
    return False


async def test_a_tenant_that_makes_no_sense_is_refused(backend: Backend) -> None:
    """Nothing of the whole definition is written."""
    nonsense: list[dict[str, Any]] = [
        {"weight": 0.0},
        {"weight": -1.0},
        {"cap": 0},
        {"cap": -1},
        {"rate_per_second": 0.0},
        {"rate_per_second": -2.0},
        {"limits": ApiLimits(-1, None, None)},
        {"default_from": "nobody"},
        {"default_from": "@acme.example"},
        {"from_domains": ("acme.example", "post@acme.example")},
        {"from_domains": ("",)},
        {"allowed_networks": ("10.0.0.0/8", "10.0.0.0/33")},
        {"allowed_networks": ("here",)},
    ]
    for bad in nonsense:
        tenants = [a_tenant("newcomer"), a_tenant(**bad)]

        assert await _is_refused(backend.tenants.define(tenants)), bad
        found = await backend.tenants.find([TenantId("newcomer"), ACME])
        assert found == [None, a_tenant()], bad


async def test_a_tier_that_makes_no_sense_is_refused(backend: Backend) -> None:
    """A tier's weight is above zero."""
    for weight in (0.0, -1.0):
        assert await _is_refused(backend.tenants.weigh_tier("gold", weight)), weight


async def test_extreme_weights_starve_no_tenant(backend: Backend) -> None:
    """Weights are bounded: the heaviest leaves the lightest its turn, in time."""
    await backend.tenants.define([a_tenant(weight=1e6), a_tenant(BRASA, weight=1e-6)])
    await accepted(backend.store, *messages(20, ACME), *messages(20, BRASA))

    served = Counter(await claimed_tenants(backend.store, limit=40))

    assert served == {ACME: 20, BRASA: 20}


async def test_fairness_that_makes_no_sense_is_refused(backend: Backend) -> None:
    """It would be kept, and stop every worker that reads it."""
    for fairness in (
        Fairness(max_jobs_per_tenant_batch=0),
        Fairness(max_jobs_per_tenant_batch=1_000_001),  # more than a store can compute with
        Fairness(round_robin_base_priority=0),
        Fairness(max_round_robin_priority=0),
        Fairness(priority_increment_per_round=-1),
    ):
        assert await _is_refused(backend.tenants.tune(fairness)), fairness


async def test_a_rate_that_no_clock_can_count_is_refused(backend: Backend) -> None:
    """Neither one job in an age nor a million in a moment."""
    for rate in (0, -1, 1e-14, 5e-324, 1e9, float("nan"), float("inf")):
        tenant = a_tenant(rate_per_second=rate)
        assert await _is_refused(backend.tenants.define([tenant])), rate


async def test_a_send_limit_that_makes_no_sense_is_refused(backend: Backend) -> None:
    """At least one job, in a time that ends."""
    for limit in (
        SendLimit(0, timedelta(1)),
        SendLimit(1, timedelta(0)),
        SendLimit(1, timedelta.max),
    ):
        assert await _is_refused(backend.tenants.limit(EMAIL, limit)), limit

"""Suppressions, counted: soft bounces suppress when there are enough of them in the window."""

from datetime import timedelta
from itertools import permutations

import pytest

from carteiro.model import NewSuppression, SuppressionReason
from carteiro.policy.suppression import SOFT_BOUNCES, SOFT_WINDOW
from carteiro.ports import Backend
from support.builders import ACME
from support.clock import StoreClock

ANA = "ana@example.com"
A_DAY = timedelta(days=1)


async def _bounces(backend: Backend, clock: StoreClock, *ago: timedelta) -> bool:
    """True if the address is suppressed after soft bounces of these ages, reported in this order."""
    for each in ago:
        new = NewSuppression(ANA, SuppressionReason.SOFT_BOUNCE, clock.at(-each))
        await backend.suppressions.put([new], tenant=ACME)
    return bool(await backend.suppressions.find([ANA], tenant=ACME))


async def test_one_bounce_below_the_limit_is_only_counted(
    backend: Backend, clock: StoreClock
) -> None:
    """It is recorded, and suppresses nobody."""
    is_suppressed = await _bounces(
        backend, clock, *[A_DAY * each for each in range(SOFT_BOUNCES - 1)]
    )

    [counted] = (await backend.suppressions.list(ACME)).rows
    assert not is_suppressed
    assert (counted.is_active, counted.bounces) == (False, SOFT_BOUNCES - 1)


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_enough_suppress_in_any_order(
    backend: Backend, clock: StoreClock, order: tuple[int, ...]
) -> None:
    """Repeated ones do not count again."""
    times = [A_DAY * 10 * each for each in order]

    is_suppressed = await _bounces(backend, clock, *times, *times)

    [counted] = (await backend.suppressions.list(ACME)).rows
    assert is_suppressed
    assert (counted.is_active, counted.bounces) == (True, 3)
    assert counted.expires_at == clock.at(SOFT_WINDOW)


async def test_bounces_too_far_apart_are_not_enough(backend: Backend, clock: StoreClock) -> None:
    assert not await _bounces(backend, clock, SOFT_WINDOW + A_DAY, A_DAY, timedelta(0))


async def test_suppression_ends_by_itself(backend: Backend, clock: StoreClock) -> None:
    """After another window."""
    is_suppressed = await _bounces(backend, clock, 2 * A_DAY, A_DAY, timedelta(0))
    clock.advance(SOFT_WINDOW)

    assert is_suppressed
    assert await backend.suppressions.find([ANA], tenant=ACME) == []

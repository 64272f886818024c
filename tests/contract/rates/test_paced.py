"""Rates, paced: all processes together stay within the rate, a second's worth ahead at most."""

import asyncio
from datetime import timedelta
from math import inf

from carteiro.model import Drawn, ProviderRate
from carteiro.ports import Backend
from support.clock import StoreClock
from support.set_ups import Place

STAY = timedelta(seconds=5)
SES = "ses:eu-west-1"


async def _drawn(
    backend: Backend, count: int, process: str = "one", ceiling: float | None = 10.0
) -> Drawn:
    return await backend.rates.draw(SES, count, process=process, stay=STAY, ceiling=ceiling)


async def test_one_seconds_worth_can_be_drawn_and_then_the_rate(
    backend: Backend, clock: StoreClock
) -> None:
    """An empty draw has the time of the next one."""
    first, dry = await _drawn(backend, 100), await _drawn(backend, 1)
    clock.advance(timedelta(milliseconds=300))
    later = await _drawn(backend, 100)

    assert (first.granted, dry.granted, later.granted) == (10, 0, 3)
    assert dry.wait == timedelta(milliseconds=100)
    assert dry.rate == 10.0


async def test_draws_without_a_ceiling_are_unlimited(backend: Backend) -> None:
    """They are not counted."""
    drawn = [await _drawn(backend, 1000, ceiling=ceiling) for ceiling in (None, inf, None)]

    assert [each.granted for each in drawn] == [1000] * 3
    assert all(each.rate is None for each in drawn)


async def test_each_provider_has_its_own_rate(backend: Backend) -> None:
    """Two regions are two."""
    await _drawn(backend, 100)

    other = await backend.rates.draw("ses:us-east-1", 9, process="one", stay=STAY, ceiling=50.0)

    assert other.granted == 9
    assert await backend.rates.show() == [
        ProviderRate(SES, 10.0, 10.0, 1),
        ProviderRate("ses:us-east-1", 50.0, 50.0, 1),
    ]


async def test_two_processes_together_do_not_exceed_the_rate(
    place: Place, clock: StoreClock
) -> None:
    """Over several seconds, at any frequency, and at the same time."""
    granted = 0
    async with place.opened() as first, place.opened() as second:
        for _ in range(50):
            answers = await asyncio.gather(
                _drawn(first, 100, "one"), _drawn(second, 100, "two"), _drawn(first, 3, "one")
            )
            granted += sum(each.granted for each in answers)
            clock.advance(timedelta(milliseconds=100))

    assert 49 + 10 <= granted <= 5 * 10 + 10

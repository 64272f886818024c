"""Rates, adaptive: a provider that throttles is called half as fast by all, and bit by bit as fast as before."""

import asyncio
from datetime import timedelta

from carteiro.ports import Backend
from support.clock import StoreClock
from support.set_ups import Place

STAY = timedelta(seconds=5)
SECOND = timedelta(seconds=1)


async def _rate(backend: Backend, ceiling: float | None = 10.0) -> float | None:
    drawn = await backend.rates.draw("ses", 0, process="one", stay=STAY, ceiling=ceiling)
    return drawn.rate


async def test_burst_of_throttling_counts_once(backend: Backend, clock: StoreClock) -> None:
    """Within one second; the next second counts again."""
    await _rate(backend)
    await asyncio.gather(*(backend.rates.slow_down("ses", going=10.0) for _ in range(5)))
    burst = await _rate(backend)
    clock.advance(SECOND)
    await backend.rates.slow_down("ses", going=10.0)

    assert burst == 5.0
    assert await _rate(backend) == 2.75


async def test_rate_climbs_back_slowly(backend: Backend, clock: StoreClock) -> None:
    """A twentieth of the ceiling each second."""
    await _rate(backend)
    await backend.rates.slow_down("ses", going=10.0)

    climb = []
    for _ in range(12):
        clock.advance(SECOND)
        climb.append(await _rate(backend))

    assert climb[:3] == [5.5, 6.0, 6.5]
    assert climb[-3:] == [10.0] * 3


async def test_unknown_rate_starts_at_the_current_speed(
    backend: Backend, clock: StoreClock
) -> None:
    """Free again after a while without throttling; also of a provider that nobody drew from."""
    await backend.rates.slow_down("ses", going=40.0)
    cut = await _rate(backend, ceiling=None)
    clock.advance(30 * SECOND)

    assert cut == 20.0
    assert await _rate(backend, ceiling=None) is None


async def test_nothing_can_be_drawn_at_the_moment_of_throttling(backend: Backend) -> None:
    """The remaining tokens are gone."""
    await _rate(backend)

    await backend.rates.slow_down("ses", going=10.0)
    drawn = await backend.rates.draw("ses", 10, process="one", stay=STAY, ceiling=10.0)

    assert (drawn.granted, drawn.wait) == (0, timedelta(milliseconds=200))


async def test_throttling_of_one_process_slows_the_other(place: Place) -> None:
    """And the next opener of the store."""
    async with place.opened() as first, place.opened() as second:
        await _rate(second)
        await first.rates.slow_down("ses", going=10.0)
        other = await _rate(second)
    async with place.opened() as third:
        next_one = await _rate(third)

    assert other == next_one == 5.0

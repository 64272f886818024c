"""Rates, steady: a clock that steps back delays nothing for long and lifts no limit."""

from datetime import timedelta

from carteiro.model import Drawn
from carteiro.ports import Backend
from support.clock import StoreClock

STAY = timedelta(seconds=5)
AN_HOUR = timedelta(hours=1)


async def _drawn(backend: Backend, count: int, process: str = "one") -> Drawn:
    return await backend.rates.draw("ses", count, process=process, stay=STAY, ceiling=10.0)


async def test_calls_go_on_at_the_rate_after_a_step_back(
    backend: Backend, clock: StoreClock
) -> None:
    """As if nothing had been drawn: a second's worth, then the rate."""
    await _drawn(backend, 100)
    clock.back(AN_HOUR)
    first, dry = await _drawn(backend, 100), await _drawn(backend, 100)
    clock.advance(timedelta(seconds=1))

    assert (first.granted, dry.granted) == (10, 0)
    assert (await _drawn(backend, 100)).granted == 10


async def test_caller_from_before_the_last_draw_gets_nothing_more(
    backend: Backend, clock: StoreClock
) -> None:
    """Its time was read before it waited for the lock: the clock did not step back."""
    await _drawn(backend, 100)
    clock.back(timedelta(milliseconds=1))
    late = await _drawn(backend, 100)
    clock.advance(timedelta(milliseconds=101))

    assert late.granted == 0
    assert (await _drawn(backend, 100)).granted == 1


async def test_rate_climbs_from_its_value_after_a_step_back(
    backend: Backend, clock: StoreClock
) -> None:
    """Neither free at once nor slow for an hour."""
    await _drawn(backend, 0)
    await backend.rates.slow_down("ses", going=10.0)
    clock.back(AN_HOUR)
    cut = await _drawn(backend, 0)
    clock.advance(timedelta(seconds=4))

    assert cut.rate == 5.0
    assert (await _drawn(backend, 0)).rate == 7.0


async def test_absent_process_does_not_count_for_an_hour_after_a_step_back(
    backend: Backend, clock: StoreClock
) -> None:
    """A running one reports itself again within its stay."""
    await _drawn(backend, 0, "gone")
    clock.back(AN_HOUR)

    assert (await _drawn(backend, 0)).processes == 1


async def test_step_ahead_is_a_long_pause(backend: Backend, clock: StoreClock) -> None:
    """No more than a second's worth is there."""
    await _drawn(backend, 100)
    clock.advance(AN_HOUR)

    assert (await _drawn(backend, 100)).granted == 10

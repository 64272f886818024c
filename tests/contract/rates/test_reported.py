"""Rates, reported: the last problem of a provider, and whether its circuit is open, are visible to all processes."""

from datetime import timedelta

from carteiro.model import ProviderRate
from carteiro.ports import Backend
from support.clock import StoreClock
from support.set_ups import Place

MINUTE = timedelta(minutes=1)
WHY = "NETWORK_ERROR: connection refused"


async def _shown(backend: Backend) -> ProviderRate:
    [shown] = await backend.rates.show()
    return shown


async def test_open_circuit_is_visible_with_its_reason(place: Place, clock: StoreClock) -> None:
    """Also of a provider that nobody drew from."""
    async with place.opened() as worker, place.opened() as desk:
        await worker.rates.report("smtp", why=WHY, wait=MINUTE)
        shown = await _shown(desk)

    assert (shown.provider, shown.is_open) == ("smtp", True)
    assert (shown.trouble, shown.trouble_at) == (WHY, clock.at())


async def test_recovered_provider_keeps_its_last_failure(
    backend: Backend, clock: StoreClock
) -> None:
    """It is healthy, and people see when it was not."""
    await backend.rates.report("smtp", why=WHY, wait=MINUTE)
    began = clock.at()
    clock.advance(MINUTE)
    await backend.rates.report("smtp", why=None)

    shown = await _shown(backend)
    assert (shown.is_open, shown.trouble, shown.trouble_at) == (False, WHY, began)


async def test_circuit_of_a_dead_process_does_not_stay_open(
    backend: Backend, clock: StoreClock
) -> None:
    """It ends with its wait and a probe without a result; also after a step of the clock."""
    await backend.rates.report("smtp", why=WHY, wait=MINUTE)
    clock.advance(MINUTE)
    on_trial = await _shown(backend)
    clock.advance(MINUTE)
    gone = await _shown(backend)
    clock.back(timedelta(hours=1))

    assert (on_trial.is_open, gone.is_open) == (True, False)
    assert not (await _shown(backend)).is_open


async def test_provider_without_failures_has_none(backend: Backend) -> None:
    """It answers; its rate is not affected."""
    await backend.rates.draw("smtp", 1, process="one", stay=MINUTE / 12, ceiling=10.0)
    await backend.rates.report("smtp", why=None)

    assert await _shown(backend) == ProviderRate("smtp", 10.0, 10.0, 1)

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


async def test_whoever_looks_sees_that_it_is_left_alone_and_why(
    place: Place, clock: StoreClock
) -> None:
    """Also of a provider that nobody drew from."""
    async with place.opened() as worker, place.opened() as desk:
        await worker.rates.report("smtp", why=WHY, wait=MINUTE)
        shown = await _shown(desk)

    assert (shown.provider, shown.is_open) == ("smtp", True)
    assert (shown.trouble, shown.trouble_at) == (WHY, clock.at())


async def test_a_provider_that_answers_again_keeps_what_it_had(
    backend: Backend, clock: StoreClock
) -> None:
    """It is well, and people see when it was not."""
    await backend.rates.report("smtp", why=WHY, wait=MINUTE)
    began = clock.at()
    clock.advance(MINUTE)
    await backend.rates.report("smtp", why=None)

    shown = await _shown(backend)
    assert (shown.is_open, shown.trouble, shown.trouble_at) == (False, WHY, began)


async def test_a_process_that_is_gone_leaves_nobody_alone_for_ever(
    backend: Backend, clock: StoreClock
) -> None:
    """When its wait and a trial are over without a word; nor by a step of the clock."""
    await backend.rates.report("smtp", why=WHY, wait=MINUTE)
    clock.advance(MINUTE)
    on_trial = await _shown(backend)
    clock.advance(MINUTE)
    gone = await _shown(backend)
    clock.back(timedelta(hours=1))

    assert (on_trial.is_open, gone.is_open) == (True, False)
    assert not (await _shown(backend)).is_open


async def test_one_that_never_had_any_has_none(backend: Backend) -> None:
    """It answers, as ever; its pace is its own."""
    await backend.rates.draw("smtp", 1, process="one", stay=MINUTE / 12, ceiling=10.0)
    await backend.rates.report("smtp", why=None)

    assert await _shown(backend) == ProviderRate("smtp", 10.0, 10.0, 1)

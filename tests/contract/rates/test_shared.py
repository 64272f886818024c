"""Rates, shared: a process counts until its stay ends, or it leaves; none draws more than its share at once."""

from datetime import timedelta

from carteiro.model import ZERO, Drawn
from carteiro.ports import Backend
from support.clock import MILLISECOND, StoreClock
from support.set_ups import Place

STAY = timedelta(seconds=5)


async def _drawn(backend: Backend, process: str, count: int = 0, stay: timedelta = STAY) -> Drawn:
    return await backend.rates.draw("smtp", count, process=process, stay=stay, ceiling=10.0)


async def test_killed_process_frees_its_share_when_its_stay_ends(
    backend: Backend, clock: StoreClock
) -> None:
    """Not a moment sooner: it may only be slow."""
    await _drawn(backend, "killed")
    clock.advance(STAY - MILLISECOND)
    before = await _drawn(backend, "alive")
    clock.advance(MILLISECOND)

    assert before.processes == 2
    assert (await _drawn(backend, "alive")).processes == 1


async def test_process_that_draws_again_stays(backend: Backend, clock: StoreClock) -> None:
    """It is counted once, at any number of draws."""
    for _ in range(4):
        clock.advance(STAY / 2)
        await _drawn(backend, "one")

    assert (await _drawn(backend, "two")).processes == 2


async def test_process_that_leaves_does_not_count(backend: Backend) -> None:
    """At once; a repetition changes nothing."""
    await _drawn(backend, "leaves")
    for _ in range(2):
        await _drawn(backend, "leaves", stay=ZERO)

    assert (await _drawn(backend, "stays")).processes == 1


async def test_share_of_others_cannot_be_drawn(backend: Backend) -> None:
    """A second's worth is split; the first to come gets the remainder."""
    for process in ("two", "three"):
        await _drawn(backend, process)

    granted = [(await _drawn(backend, each, 100)).granted for each in ("one", "two", "three")]

    assert granted == [4, 4, 2]


async def test_processes_know_of_each_other(place: Place) -> None:
    """Through the store alone."""
    async with place.opened() as first, place.opened() as second:
        await _drawn(first, "one")
        drawn = await _drawn(second, "two")

    assert drawn.processes == 2

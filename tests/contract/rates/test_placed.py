"""Rates, placed: calls at once, of all processes together, stay within the concurrency."""

from datetime import timedelta

import pytest

from carteiro.model import ZERO, Drawn
from carteiro.ports import Backend
from support.clock import StoreClock
from support.set_ups import Place

STAY = timedelta(seconds=5)


async def _drawn(
    backend: Backend,
    process: str,
    *,
    concurrency: int = 4,
    holds: int = 0,
    stay: timedelta = STAY,
    ceiling: float | None = None,
) -> Drawn:
    return await backend.rates.draw(
        "smtp",
        10,
        process=process,
        stay=stay,
        ceiling=ceiling,
        concurrency=concurrency,
        holds=holds,
    )


async def _round(backend: Backend, held: dict[str, int], concurrency: int) -> None:
    """Each process in turn reports its places, and gets its share."""
    for process, holds in held.items():
        drawn = await _drawn(backend, process, concurrency=concurrency, holds=holds)
        assert drawn.places is not None
        held[process] = drawn.places
        assert sum(held.values()) <= concurrency


@pytest.mark.parametrize(("concurrency", "processes"), [(4, 1), (4, 3), (2, 5), (1, 3)])
async def test_more_processes_than_places_stay_within_the_limit(
    backend: Backend, concurrency: int, processes: int
) -> None:
    """At any moment; in the end each has an equal part, and the first to come the rest."""
    held: dict[str, int] = {}
    for n in range(processes):
        held[f"process {n}"] = 0
        for _ in range(3):  # reported, given back, and received
            await _round(backend, held, concurrency)

    share, rest = divmod(concurrency, processes)
    assert list(held.values()) == [share + (n < rest) for n in range(processes)]


async def test_newcomer_has_no_place_while_all_are_taken(backend: Backend) -> None:
    """Until another reports fewer: reported places may still be in use."""
    first = await _drawn(backend, "one")
    none = await _drawn(backend, "two")
    fewer = await _drawn(backend, "one", holds=4)
    still_none = await _drawn(backend, "two")
    await _drawn(backend, "one", holds=2)
    some = await _drawn(backend, "two")

    assert (first.places, none.places, fewer.places, still_none.places) == (4, 0, 2, 0)
    assert some.places == 2


async def test_places_move_when_a_process_leaves(backend: Backend) -> None:
    """At once, to the next one."""
    for process in ("one", "two", "three"):
        await _drawn(backend, process, concurrency=1)
    await _drawn(backend, "one", concurrency=1, stay=ZERO)

    places = [
        (await _drawn(backend, each, concurrency=1)).places for each in ("three", "two", "three")
    ]

    assert places == [0, 1, 0]


async def test_places_move_when_a_process_is_killed(backend: Backend, clock: StoreClock) -> None:
    """When its stay ends."""
    await _drawn(backend, "killed", concurrency=1)
    clock.advance(STAY - timedelta(milliseconds=1))
    before = await _drawn(backend, "two", concurrency=1)
    clock.advance(timedelta(milliseconds=1))

    assert (before.places, (await _drawn(backend, "two", concurrency=1)).places) == (0, 1)


async def test_process_without_a_place_takes_no_calls_from_the_others(backend: Backend) -> None:
    """Nor a part of the rate."""
    await _drawn(backend, "one", concurrency=1, ceiling=10.0)
    none = await _drawn(backend, "two", concurrency=1, ceiling=10.0)

    assert (none.granted, none.places, none.processes) == (0, 0, 1)


async def test_places_without_a_limit_are_unlimited(backend: Backend) -> None:
    """They are not reported."""
    assert (await _drawn(backend, "one", concurrency=0)).places is None


async def test_processes_know_the_places_of_others(place: Place) -> None:
    """Through the store alone, which keeps their order."""
    async with place.opened() as first, place.opened() as second:
        names = ["z", "a", "m"]
        for name in names:
            await _drawn(first, name, concurrency=2)
        await _drawn(first, "z", concurrency=2, holds=1)
        places = [(await _drawn(second, each, concurrency=2)).places for each in ("m", "a")]

    assert places == [0, 1]

"""Lists of a pool: how long it waits for more free slots before it claims or starts jobs."""

import asyncio
from typing import Any, cast

import pytest

from carteiro.engine import worker as engine
from carteiro.engine.run import Run
from carteiro.engine.slots import Slots
from carteiro.jobs.kind import Pool
from carteiro.model import Outcome, Taken
from carteiro.ports import Handover, Parcel
from support.builders import TASK
from support.working import TOO_LONG, a_job, a_kind, an_office

_SLEEP = asyncio.sleep


async def _taken(_parcel: Parcel, _handover: Handover) -> Outcome:
    return Taken("")


@pytest.mark.parametrize(("connections", "free"), [(2, 4), (9, 2), (20, 2), (0, 2)])
async def test_calls_that_wait_for_a_connection_are_followed_by_a_list(
    connections: int, free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the slots beyond the connections are filled at once; nobody misses them until then."""
    pool = Slots(Pool("email", 10, (a_kind(_taken, connections=connections),)))
    pool.take(10)
    pool.give_back()

    async def one_ends(_seconds: float) -> None:
        pool.give_back()

    monkeypatch.setattr(asyncio, "sleep", one_ends)

    await pool.has_free_slot()

    assert pool.free == free


async def test_free_slot_is_not_kept_from_a_job_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """If calls take long, the list is short."""
    pool = Slots(Pool("email", 10, (a_kind(_taken, connections=2),)))
    pool.take(9)
    slept = []

    async def nothing_ends(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", nothing_ends)

    await pool.has_free_slot()

    assert sum(slept) < 0.05


async def test_next_claim_comes_when_half_of_the_jobs_ahead_have_a_slot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A claim has a fixed cost, and the other half is enough to do until it is answered."""
    pool = Slots(Pool("task", 10, (a_kind(_taken),)))
    pool._ahead = 100
    pool.take(10)
    pool.queue([], cast("Any", [object()] * 100))
    monkeypatch.setattr(asyncio, "sleep", lambda _seconds: _SLEEP(0))

    claiming = asyncio.create_task(pool.has_room())
    for _ in range(100):
        for _ in range(10):
            await _SLEEP(0)
        if claiming.done():
            break
        pool.give_back()
        pool.take(1)
        pool.waiting.popleft()

    assert claiming.done()
    assert len(pool.waiting) == 50


@pytest.mark.parametrize(
    ("patience", "before", "after"), [(TOO_LONG, [1], [1, 3]), (0.0, [1, 3], [1, 3])]
)
async def test_slots_that_become_free_during_a_declare_are_filled_by_one_list(
    patience: float, before: list[int], after: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each list has a cost of its own; but a store that takes long keeps nobody waiting."""
    lists: list[int] = []
    is_declared = asyncio.Event()

    async def work(runs: list[Run]) -> None:
        lists.append(len(runs))
        await is_declared.wait()

    monkeypatch.setattr(asyncio, "sleep", lambda _seconds: _SLEEP(0))
    monkeypatch.setattr(engine, "_DECLARED_S", patience)
    async with an_office() as office:
        worker = office.worker(Pool("task", 4, (a_kind(_taken),)))
        monkeypatch.setattr(worker, "_work", work)
        [pool] = worker._pools
        pool.take(3)
        refilling = asyncio.create_task(worker._refill(pool))
        pool.queue([], [Run(a_job(kind=TASK), pool, 0.0) for _ in range(10)])
        async with asyncio.timeout(TOO_LONG):
            while not lists:
                await _SLEEP(0)
            pool.give_back(3)
            for _ in range(50):
                await _SLEEP(0)
            assert lists[:2] == before
            is_declared.set()
            while len(lists) < len(after):
                await _SLEEP(0)
        refilling.cancel()

    assert lists == after

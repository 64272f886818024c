"""The loop that adds up figures: notes become minutes, the queue is looked at, old ones are deleted."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from carteiro.errors import QueueAway
from carteiro.maintenance.rollups import fold_all, roll_up
from carteiro.model import Depth
from carteiro.ports import Backend, Reading, Rollups
from support.builders import ACME, a_message, messages, tenants_named
from support.quick_store import quick_backend
from support.steps import accepted, claimed
from support.working import TOO_LONG

HOUR = timedelta(hours=1)
SOON = timedelta(milliseconds=1)


class Watched:
    """The figures of a store; knows when it was pruned, which is the end of a round."""

    def __init__(self, rollups: Rollups) -> None:
        self._rollups = rollups
        self.pruned = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        """As the store."""
        return getattr(self._rollups, name)

    async def prune(self, **asked: Any) -> int:
        """As the store."""
        count = await self._rollups.prune(**asked)
        self.pruned.set()
        return count


class Away:
    """A queue that is unreachable."""

    async def depths(self) -> list[Depth]:
        """Raise."""
        raise QueueAway("the queue is unreachable")


async def _round(backend: Backend, reading: Reading, *, looks: int = 1) -> None:
    rollups = Watched(backend.rollups)
    retention = {"minutes": HOUR, "hours": 400 * 24 * HOUR, "groups": 24 * HOUR}
    loop = roll_up(
        backend.upkeep,
        cast("Rollups", rollups),
        backend.failures,
        reading,
        most=100,
        every=SOON,
        **retention,
    )
    task = asyncio.create_task(loop)
    try:
        async with asyncio.timeout(TOO_LONG):
            for _ in range(looks):
                rollups.pruned.clear()
                await rollups.pruned.wait()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_round_folds_all_notes_and_looks_at_the_queue() -> None:
    """Jobs in flight and the age of the oldest waiting one are figures, too."""
    async with quick_backend() as backend:
        await backend.tenants.define(tenants_named([ACME]))
        await accepted(backend.store, *messages(3))
        await claimed(backend.store, limit=2)
        await asyncio.sleep(0.002)  # the third one has waited
        await _round(backend, backend.reading)
        left = await backend.rollups.fold(limit=10, most=100)
        figures = await backend.rollups.total("minute", HOUR)

    assert left <= 1  # the look at the queue
    assert (figures["accepted"], figures["max_in_flight"]) == (3, 2)
    assert figures["max_queue_age_ms"] > 0


async def test_unreachable_queue_does_not_stop_the_figures() -> None:
    """Its depth is unknown; notes are folded."""
    async with quick_backend() as backend:
        await backend.tenants.define(tenants_named([ACME]))
        await accepted(backend.store, a_message())
        await _round(backend, cast("Reading", Away()))
        figures = await backend.rollups.total("minute", HOUR)

        assert await backend.rollups.fold(limit=10, most=100) == 0
    assert figures == {"accepted": 1}


async def test_clock_that_is_set_back_stops_no_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the queue has no age, and nothing is pruned, until the clock is where it was."""
    told = iter(datetime(2027, 1, 15, 12 - hour, tzinfo=UTC) for hour in range(9))
    monkeypatch.setattr(
        "carteiro.maintenance.rollups.datetime", SimpleNamespace(now=lambda _: next(told))
    )
    monkeypatch.setattr("carteiro.maintenance.rollups._LOOK_EVERY", timedelta(0))
    async with quick_backend() as backend:
        await _round(backend, backend.reading, looks=3)


async def test_one_shot_process_folds_everything() -> None:
    """More notes than a page has."""
    async with quick_backend() as backend:
        await backend.tenants.define(tenants_named([ACME]))
        for _ in range(501):
            await backend.rollups.see(await backend.rollups.total("minute", -HOUR))
        await fold_all(backend.rollups, most=100)

        assert await backend.rollups.fold(limit=10, most=100) == 0

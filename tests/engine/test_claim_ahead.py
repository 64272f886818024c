"""Jobs that are claimed before a slot is free for them."""

import asyncio
import time
from datetime import timedelta
from typing import Any, cast

import pytest

from carteiro.engine.run import Run
from carteiro.engine.slots import Slots
from carteiro.engine.worker import Worker
from carteiro.jobs.kind import Pool
from carteiro.model import Claimed, Outcome, State, Taken
from carteiro.ports import Handover, Parcel, Store
from support.builders import TASK
from support.steps import claimed
from support.working import (
    A_MOMENT,
    TOO_LONG,
    Gate,
    Through,
    a_job,
    a_kind,
    an_office,
    short,
    until_done,
)


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pace that allows 20 jobs ahead, on any machine, where jobs may be claimed ahead at all."""
    monkeypatch.setattr(
        Slots, "_count_pace", lambda self: setattr(self, "_ahead", 20 if self._ahead_s else 0)
    )


class Recorded(Through):
    """A store that gives all that it is asked for, and records how many jobs were claimed ahead."""

    asked = 0
    got = 0

    async def claim(self, **asked: Any) -> Claimed:
        self.asked = max(self.asked, asked["ahead"])
        limit, ahead = asked.pop("limit"), asked.pop("ahead")
        answer = await self.store.claim(**asked, limit=limit + ahead)
        self.got = max(self.got, len(answer.jobs) - limit)
        return answer


async def _slow(_parcel: Parcel, _handover: Handover) -> Outcome:
    await asyncio.sleep(A_MOMENT)
    return Taken("")


@pytest.mark.usefixtures("_quick")
async def test_jobs_claimed_ahead_wait_for_a_slot() -> None:
    """No more of them run at once than there are slots, and all of them run."""
    inside, most_inside = 0, 0

    async def counted(parcel: Parcel, handover: Handover) -> Outcome:
        nonlocal inside, most_inside
        inside += 1
        most_inside = max(most_inside, inside)
        outcome = await _slow(parcel, handover)
        inside -= 1
        return outcome

    async with an_office() as office:
        for _ in range(60):
            await office.task()
        store = Recorded(office.backend.store)
        await office.work(Pool("task", 3, (a_kind(counted),)), store=store)

        assert await office.backend.reading.states() == {State.SENT: 60}
        assert (most_inside, store.got > 0) == (3, True)


@pytest.mark.parametrize(
    ("ended", "ahead"),
    [(0, 0), (20, 0), (50, 15), (100_000, 1000)],
    ids=["nothing", "slow", "quick", "very quick"],
)
async def test_pace_decides_how_many_are_claimed_ahead(
    ended: int, ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as end in the time of the setting, beyond those that run: a slow job ends at most once in it."""
    pool = Slots(Pool("task", 10, (a_kind(_slow),)), ahead=timedelta(milliseconds=200))
    now = time.monotonic()
    await pool.has_room()
    pool.take(ended)
    for _ in range(ended):
        pool.give_back()
    monkeypatch.setattr(time, "monotonic", lambda: now + 0.4)
    pool._counted_at = now

    await pool.has_room()

    assert pool.wanted_ahead == ahead


@pytest.mark.parametrize(("size", "ahead"), [(1000, 100), (2**20, 32), (2**27, 0)])
async def test_fewer_large_jobs_are_claimed_ahead(size: int, ahead: int) -> None:
    """Their contents wait in memory, of an e-mail up to a megabyte."""
    pool = Slots(Pool("email", 10, (a_kind(_slow),)), ahead=timedelta(milliseconds=200))
    pool._ahead = 100

    pool.got([a_job(content="x" * size)] * 20, wanted=10)

    assert pool.wanted_ahead == ahead


async def test_nothing_more_is_asked_for_ahead_once_there_is_no_more() -> None:
    """Neither if all tenants have limits, nor if the queue is nearly empty."""
    pool = Slots(Pool("task", 10, (a_kind(_slow),)), ahead=timedelta(milliseconds=200))
    pool._ahead = 100

    pool.got([a_job()] * 10, wanted=10)

    assert pool.wanted_ahead == 0


@pytest.mark.usefixtures("_quick")
async def test_jobs_that_wait_too_long_are_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool that has become slow keeps nothing from other workers."""
    monkeypatch.setattr("carteiro.engine.worker._STALE_S", 0.0)
    gate = Gate()
    async with an_office() as office:
        for _ in range(10):
            await office.task()
        store = Recorded(office.backend.store)
        worker = office.worker(
            Pool("task", 2, (a_kind(gate.deliver),)), store=store, lengths=short()
        )
        working = asyncio.create_task(until_done(worker))
        async with asyncio.timeout(TOO_LONG):
            await gate.arrived.wait()
            while store.got <= 0 or not (left := await claimed(office.backend.store, kinds=[TASK])):
                await asyncio.sleep(A_MOMENT)
        await office.backend.store.release([job.lease for job in left])
        gate.open.set()
        await working

        assert {job.claims for job in left} == {1}


async def test_some_jobs_are_claimed_for_slots_while_others_wait_for_all_of_them() -> None:
    """Tenants with a limit are not claimed ahead: they would wait for the end of everybody's backlog."""
    pool = Slots(Pool("task", 16, (a_kind(_slow),)), ahead=timedelta(milliseconds=200))
    pool._ahead = 100
    pool.take(16)
    pool.queue([], cast("Any", [object()] * 100))

    assert pool.wanted == 2


async def test_jobs_claimed_for_slots_come_before_those_claimed_ahead() -> None:
    """A limit counts them from their claim on."""
    async with an_office() as office:
        tasks = [await office.task() for _ in range(6)]
        worker = office.worker(Pool("task", 2, (a_kind(_slow),)))
        [pool] = worker._pools
        pool.take(2)
        jobs = (await claimed(office.backend.store, kinds=[TASK], limit=6))[:6]
        runs = [Run(job, pool, 0.0) for job in jobs]
        worker._start(pool, runs[:3], 0)
        worker._start(pool, runs[3:], 2)

        waiting = [run.job.lease.job for run in pool.waiting]
        assert waiting == [*tasks[3:5], *tasks[:3], tasks[5]]
        await worker._give_back_waiting()


@pytest.mark.usefixtures("_quick")
async def test_limit_of_a_run_counts_all_jobs() -> None:
    """Jobs that wait when it is reached would be given back."""
    async with an_office() as office:
        for _ in range(60):
            await office.task()
        worker = office.worker(Pool("task", 3, (a_kind(_slow),)))

        assert await worker.run(until_idle=True, limit=40) == {State.SENT: 40}


@pytest.mark.usefixtures("_quick")
async def test_kind_that_must_start_at_once_is_not_claimed_ahead() -> None:
    """A send limit counts claims, so starts follow them."""
    async with an_office() as office:
        for _ in range(20):
            await office.task()
        store = Recorded(office.backend.store)
        kind = a_kind(_slow, start_within=timedelta(seconds=1))
        await office.work(Pool("task", 2, (kind,)), store=store)

        assert await office.backend.reading.states() == {State.SENT: 20}
        assert store.asked == 0


@pytest.mark.usefixtures("_quick")
async def test_stop_returns_jobs_that_wait_for_a_slot() -> None:
    """At once, and as if they had never been claimed: nothing of them has begun."""
    gate = Gate()
    async with an_office() as office:
        for _ in range(40):
            await office.task()

        async def first_quick(parcel: Parcel, handover: Handover) -> Outcome:
            if len(gate.began) < 20:
                gate.began.append(parcel)
                return await _slow(parcel, handover)
            return await gate.deliver(parcel, handover)

        store = Recorded(office.backend.store)
        worker = office.worker(Pool("task", 2, (a_kind(first_quick),)), store=store)
        working = asyncio.create_task(until_done(worker))
        async with asyncio.timeout(TOO_LONG):
            await gate.arrived.wait()
        worker.stop()
        await asyncio.sleep(A_MOMENT)
        gate.open.set()
        await working

        left = await claimed(office.backend.store, kinds=[TASK], limit=40)
        assert store.got > 0
        assert {job.claims for job in left} == {1}


class Counted(Through):
    """A store that counts claims."""

    claims = 0

    async def claim(self, **asked: Any) -> Claimed:
        self.claims += 1
        return await self.store.claim(**asked)


async def test_worker_that_took_all_jobs_waits_without_another_claim() -> None:
    """The claim has said when to come again, and what comes meanwhile rings."""
    done = asyncio.Event()

    async def ended(_parcel: Parcel, _handover: Handover) -> Outcome:
        done.set()
        return Taken("")

    async with an_office() as office:
        store = Counted(office.backend.store)
        pools = [Pool("task", 3, (a_kind(ended),))]
        worker = Worker(cast("Store", store), office.backend.wake, pools)
        working = asyncio.create_task(worker.run())
        for _ in range(2):
            await office.task()
            async with asyncio.timeout(TOO_LONG):
                await done.wait()
            done.clear()
        worker.stop()
        await working

    assert store.claims <= 3, "one that finds nothing at the start, and one for each task"

"""The worker loop: slots, leases, and starts."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from itertools import accumulate
from typing import Any

import pytest

from carteiro.jobs.kind import Pool
from carteiro.model import ZERO, Claimed, Lease, Outcome, State, Taken
from carteiro.ports import Handover, Parcel
from support.builders import TASK
from support.steps import claimed
from support.working import (
    A_MOMENT,
    A_WHILE,
    LONG,
    TOO_LONG,
    Away,
    Gate,
    Through,
    a_kind,
    an_office,
    gated,
    logged,
    running,
    short,
    until_done,
)

pytestmark = pytest.mark.usefixtures("impatient")


# --- slots ------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [1, 2, 5])
async def test_slots_are_never_exceeded(slots: int) -> None:
    """A claim asks for no more than the free slots, with any number of waiting messages."""
    inside: list[int] = []
    turnstile = asyncio.Semaphore(0)

    async def slow(_parcel: Parcel, _handover: Handover) -> Outcome:
        inside.append(1)
        assert sum(inside) <= slots
        await turnstile.acquire()
        inside.append(-1)
        return Taken("")

    async with an_office() as office:
        for _ in range(12):
            await office.task()
        working = asyncio.create_task(office.work(Pool("task", slots, (a_kind(slow),))))
        async with asyncio.timeout(TOO_LONG):
            for ended in range(12):
                while inside.count(-1) < ended or sum(inside) < min(slots, 12 - ended):
                    await asyncio.sleep(0)
                turnstile.release()
        await working

        assert await office.backend.reading.states() == {State.SENT: 12}
        assert max(accumulate(inside)) == slots


async def test_each_pool_has_its_own_slots() -> None:
    """A full pool does not block another."""
    async with an_office() as office:
        gate = Gate()
        for _ in range(3):
            await office.post()
        task = await office.task()
        free = Gate()
        free.open.set()
        pools = (gated(office, gate, slots=1), Pool("task", 1, (a_kind(free.deliver),)))
        working = await running(office.worker(*pools), gate)

        async with asyncio.timeout(TOO_LONG):  # until it is stored, too
            while await office.state(task) is not State.SENT:
                await asyncio.sleep(A_MOMENT)
        gate.open.set()
        await working

        assert gate.most_inside == 1


async def test_pool_without_kinds_claims_nothing() -> None:
    """A worker without anything to do waits to be stopped."""
    async with an_office() as office:
        worker = office.worker(Pool("nothing", 5, ()))
        working = asyncio.create_task(until_done(worker))
        await asyncio.sleep(0)

        worker.stop()
        await working


async def test_work_that_arrives_while_another_pool_wakes_up_is_not_missed() -> None:
    """A wake-up is for every pool, also for one that has just found nothing."""
    looked, go_on = asyncio.Event(), asyncio.Event()

    class Pausing(Through):
        async def claim(self, **asked: Any) -> Claimed:
            got = await super().claim(**asked)
            if TASK in asked["kinds"] and not looked.is_set():
                looked.set()
                await go_on.wait()
            return got

    async with an_office() as office:
        gate = Gate()
        gate.open.set()
        pools = (gated(office, Gate()), Pool("task", 1, (a_kind(gate.deliver),)))
        store, wake = Pausing(office.backend.store), office.backend.wake
        worker = office.worker(*pools, store=store, wake=wake)
        working = asyncio.create_task(until_done(worker))
        await asyncio.wait_for(looked.wait(), TOO_LONG)

        await office.task()
        await asyncio.sleep(A_WHILE)
        go_on.set()
        await asyncio.wait_for(gate.arrived.wait(), 1.0)

        worker.stop()
        await working


async def test_claim_that_says_now_is_repeated_at_once() -> None:
    """There was nothing, and there is work by now: no wait in between."""

    class Sooner(Through):
        is_first = True

        async def claim(self, **asked: Any) -> Claimed:
            if self.is_first:
                self.is_first = False
                return Claimed([], ZERO)
            return await super().claim(**asked)

    async with an_office() as office:
        message = await office.post()
        before = office.clock()

        await office.work(store=Sooner(office.backend.store))

        assert await office.state(message) is State.SENT
        assert office.clock() == before


# --- leases -----------------------------------------------------------------------------------


async def test_lease_of_a_long_task_is_extended() -> None:
    """No other worker gets it meanwhile."""
    extended = asyncio.Event()

    class Watched(Through):
        async def extend(self, leases: Sequence[Lease], *, lease: timedelta) -> list[bool]:
            answers = await super().extend(leases, lease=lease)
            extended.set()
            assert answers == [True]
            return answers

    async with an_office() as office:
        gate = Gate()
        message = await office.task()
        store = Watched(office.backend.store)
        pool = Pool("task", 1, (a_kind(gate.deliver),))
        working = await running(office.worker(pool, store=store, lengths=short()), gate)
        for _ in range(3):
            office.clock.advance(timedelta(milliseconds=5))
            extended.clear()
            await asyncio.wait_for(extended.wait(), TOO_LONG)

        assert await claimed(office.backend.store, kinds=[TASK]) == []
        gate.open.set()
        await working

        assert await office.state(message) is State.SENT
        assert len(gate.began) == 1


async def test_declared_attempt_is_not_extended() -> None:
    """The hold replaces the lease, and has its own end."""
    asked: list[Lease] = []

    class Watched(Through):
        async def extend(self, leases: Sequence[Lease], *, lease: timedelta) -> list[bool]:
            asked.extend(leases)
            return await super().extend(leases, lease=lease)

    async with an_office() as office:
        gate = Gate()
        await office.post()
        store = Watched(office.backend.store)
        worker = office.worker(gated(office, gate), store=store, lengths=short())
        working = await running(worker, gate)
        asked.clear()  # calls before the declare do not count
        await asyncio.sleep(0.005)
        gate.open.set()
        await working

        assert asked == []


async def test_failed_extension_is_repeated() -> None:
    """The timer goes on: one failure does not give up all leases."""
    async with an_office() as office:
        gate = Gate()
        await office.task()
        store = Away(office.backend.store, extend=2)
        pool = Pool("task", 1, (a_kind(gate.deliver),))
        with logged() as lines:
            working = await running(office.worker(pool, store=store, lengths=short()), gate)
            await asyncio.wait_for(store.is_back.wait(), TOO_LONG)
            gate.open.set()
            await working

        failed = [line for line in lines if line["event"] == "store.failed"]
        assert [line["operation"] for line in failed] == ["extend", "extend"]


async def test_bug_in_the_lease_timer_does_not_end_the_leases() -> None:
    """An expired lease of a living worker would look like a crash of its job."""

    class Broken(Through):
        extended = 0

        async def extend(self, leases: Sequence[Lease], *, lease: timedelta) -> list[bool]:
            self.extended += 1
            if self.extended == 1:
                raise ZeroDivisionError
            gate.open.set()
            return await super().extend(leases, lease=lease)

    async with an_office() as office:
        gate = Gate()
        message = await office.task()
        store = Broken(office.backend.store)
        pool = Pool("task", 1, (a_kind(gate.deliver),))
        await until_done(office.worker(pool, store=store, lengths=short()))

        assert await office.state(message) is State.SENT
        assert store.extended > 1


# --- starts soon after their claims -----------------------------------------------------------


async def test_job_that_cannot_start_soon_after_its_claim_is_claimed_again_once() -> None:
    """A send limit counts claims: a late start would fall into the period of later ones."""

    class Counted(Through):
        released = 0

        async def release(self, leases: Sequence[Lease], *, wait: timedelta = ZERO) -> None:
            self.released += len(leases)
            await super().release(leases, wait=wait)

    async with an_office() as office:
        for within, given_back in ((ZERO, 3), (LONG, 0), (None, 0)):
            messages = [await office.post() for _ in range(3)]
            store = Counted(office.backend.store)
            kind = office.email_kind(start_within=within)

            await office.work(Pool("email", 5, (kind,)), store=store)

            assert {await office.state(each) for each in messages} == {State.SENT}
            assert store.released == given_back

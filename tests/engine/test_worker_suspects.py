"""Suspects: messages that workers did not survive run alone, and delay others little."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from carteiro.engine.slots import Place, Quiet
from carteiro.engine.worker import Lengths
from carteiro.jobs.kind import Pool
from carteiro.model import EMAIL, Claimed, DeadReason, MessageId, Outcome, State, Taken
from carteiro.ports import Handover, Parcel
from support.builders import ACME, BRASA, TASK
from support.steps import claimed, claimed_alone
from support.working import (
    A_WHILE,
    LONG,
    TOO_LONG,
    Gate,
    Office,
    Through,
    a_kind,
    an_office,
    gated,
    running,
    short,
    until_done,
)

pytestmark = pytest.mark.usefixtures("impatient")


async def a_suspect(office: Office, **fields: Any) -> MessageId:
    """A task that two workers did not survive."""
    message = await office.task(**fields)
    for _ in range(2):
        await claimed_alone(office.backend.store, kinds=[TASK], lease=timedelta(seconds=1))
        office.clock.advance(timedelta(seconds=1))
    return message


async def test_nothing_is_claimed_while_a_suspect_waits_or_runs() -> None:
    """If it kills the process, no other message counts a crash."""
    in_hand: list[int] = []
    async with an_office() as office:
        suspect = await a_suspect(office, priority=1)
        others = [await office.task() for _ in range(4)]

        async def watched(parcel: Parcel, _handover: Handover) -> Outcome:
            if parcel.message == suspect:
                await asyncio.sleep(A_WHILE)
                in_hand.append(len(worker._runs))
            return Taken("")

        worker = office.worker(Pool("task", 5, (a_kind(watched),)))
        await until_done(worker)

        assert in_hand == [1]
        assert {await office.state(each) for each in others} == {State.SENT}


async def test_suspect_waits_for_a_claim_of_another_pool() -> None:
    """A claim in flight brings jobs that would die with it: they run first."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Through):
        async def claim(self, **options: Any) -> Claimed:
            got = await super().claim(**options)
            if got.jobs and got.jobs[0].kind == EMAIL:
                asked.set()
                await go_on.wait()
            return got

    async with an_office() as office:
        suspect = await a_suspect(office)
        email = await office.post()
        gate = Gate()
        pools = (gated(office, gate), Pool("task", 5, (a_kind(gate.deliver),)))
        worker = office.worker(*pools, store=Slow(office.backend.store), lengths=short(lease=LONG))
        working = asyncio.create_task(until_done(worker))
        await asyncio.wait_for(asked.wait(), TOO_LONG)
        await asyncio.sleep(A_WHILE)
        assert gate.began == []

        go_on.set()
        gate.open.set()
        await working

        assert [parcel.message for parcel in gate.began] == [email, suspect]
        assert gate.most_inside == 1


async def test_suspects_of_one_tenant_leave_time_to_others() -> None:
    """Each takes two seconds alone: at most a twentieth of the time, while there is other work."""
    alone, shares = 0.0, list[float]()
    async with an_office() as office:
        suspects = {await office.task() for _ in range(200)}
        for _ in range(2):
            claims = {"kinds": [TASK], "lease": timedelta(seconds=1)}
            assert len(await claimed(office.backend.store, limit=200, **claims)) == 200
            office.clock.advance(timedelta(seconds=1))
            await office.backend.store.reap(limit=200)
        others = [await office.task(tenant=BRASA) for _ in range(400)]
        began = office.clock.at()

        async def takes_time(parcel: Parcel, _handover: Handover) -> Outcome:
            nonlocal alone
            is_suspect = parcel.message in suspects
            office.clock.advance(timedelta(seconds=2 if is_suspect else 0.5))
            alone += 2 * is_suspect
            elapsed = office.clock.at() - began
            shares.append((alone - 2) / elapsed.total_seconds())
            if parcel.message == others[-1]:
                worker.stop()
            return Taken("")

        worker = office.worker(Pool("task", 5, (a_kind(takes_time),)))
        await until_done(worker)

        assert alone > 0
        assert max(shares) <= 0.05


async def test_new_worker_delays_its_suspects() -> None:
    """Its predecessor may have died of one: other jobs run for the time of a lease first."""
    ran: list[tuple[MessageId, timedelta]] = []
    async with an_office() as office:
        suspect = await a_suspect(office, priority=1, ttl=timedelta(hours=1))
        other = await office.task()
        began = office.clock.at()

        async def watched(parcel: Parcel, _handover: Handover) -> Outcome:
            ran.append((parcel.message, office.clock.at() - began))
            return Taken("")

        lengths = Lengths(warm_up=timedelta(seconds=30))
        await office.work(Pool("task", 5, (a_kind(watched),)), lengths=lengths)

        assert ran == [(other, timedelta(0)), (suspect, timedelta(seconds=30))]


async def test_slow_suspect_runs_alone_for_one_lease_only() -> None:
    """After that others run alongside: it hangs, and does not kill."""
    async with an_office() as office:
        suspect = await a_suspect(office, priority=1)
        other = await office.task()
        gate = Gate()

        async def slow(parcel: Parcel, handover: Handover) -> Outcome:
            if parcel.message == suspect:
                return await gate.deliver(parcel, handover)
            gate.open.set()
            return Taken("")

        await office.work(Pool("task", 5, (a_kind(slow),)), lengths=short())

        assert await office.state(other) is State.SENT
        assert await office.state(suspect) is State.SENT


async def test_message_that_killed_five_workers_ends_without_delaying_others() -> None:
    """It is not run any more: it need not be alone, and uses no ration."""
    async with an_office() as office:
        deadly = await office.task(priority=1)
        for _ in range(5):
            await claimed_alone(office.backend.store, kinds=[TASK], lease=timedelta(seconds=1))
            office.clock.advance(timedelta(seconds=1))
        gate = Gate()
        other = await office.task()
        worker = office.worker(
            Pool("task", 2, (a_kind(gate.deliver),)), lengths=Lengths(warm_up=timedelta(hours=1))
        )
        began = office.clock.at()
        working = await running(worker, gate)
        gate.open.set()
        await working

        assert await office.dead_for(deadly) is DeadReason.CRASHES_WORKER
        assert await office.state(other) is State.SENT
        assert office.clock.at() - began < timedelta(hours=1)


async def test_suspect_does_not_wait_for_ever_for_a_long_job() -> None:
    """After one lease it is released and others are claimed: a hung task must not stop all mail."""
    quiet = Quiet()
    quiet.enter(1)
    assert isinstance(quiet.place_alone(ACME), Place)

    in_time = await quiet.is_alone(timedelta(milliseconds=5))
    quiet.leave()
    alone = await quiet.is_alone(timedelta(seconds=5))

    assert (in_time, alone) == (False, True)


async def test_waiting_suspect_is_released_on_stop() -> None:
    """It never ran: the others did not end in time."""
    async with an_office() as office:
        suspect = await a_suspect(office)
        await office.post()
        gate = Gate()
        pools = (gated(office, gate), Pool("task", 1, (a_kind(gate.deliver),)))
        worker = office.worker(*pools, lengths=short(lease=LONG, grace=timedelta(milliseconds=2)))
        working = await running(worker, gate)
        await asyncio.sleep(A_WHILE)

        worker.stop()
        await working

        assert suspect not in [parcel.message for parcel in gate.began]
        assert (await claimed_alone(office.backend.store, kinds=[TASK])).claims == 3

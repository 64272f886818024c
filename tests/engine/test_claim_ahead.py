"""Jobs that are claimed before a slot is free for them."""

import asyncio
from datetime import timedelta
from typing import Any

from carteiro.engine.worker import Lengths
from carteiro.jobs.kind import Pool
from carteiro.model import Claimed, Outcome, State, Taken
from carteiro.ports import Handover, Parcel
from support.builders import TASK
from support.steps import claimed
from support.working import A_MOMENT, TOO_LONG, Gate, Through, a_kind, an_office, until_done

FAR_AHEAD = Lengths(ahead=timedelta(days=1))  # as many as possible, at any pace


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
        await office.work(Pool("task", 3, (a_kind(counted),)), store=store, lengths=FAR_AHEAD)

        assert await office.backend.reading.states() == {State.SENT: 60}
        assert (most_inside, store.got > 0) == (3, True)


async def test_nothing_is_claimed_ahead_of_a_slow_pool() -> None:
    """Its pace is too low: it would begin them later than the setting allows."""
    gate = Gate()
    async with an_office() as office:
        for _ in range(10):
            await office.task()
        store = Recorded(office.backend.store)
        lengths = Lengths(ahead=timedelta(microseconds=1))
        working = asyncio.create_task(
            office.work(Pool("task", 2, (a_kind(gate.deliver),)), store=store, lengths=lengths)
        )
        await gate.arrived.wait()
        gate.open.set()
        await working

        assert store.asked == 0


async def test_kind_that_must_start_at_once_is_not_claimed_ahead() -> None:
    """A send limit counts claims, so starts follow them."""
    async with an_office() as office:
        for _ in range(20):
            await office.task()
        store = Recorded(office.backend.store)
        kind = a_kind(_slow, start_within=timedelta(seconds=1))
        await office.work(Pool("task", 2, (kind,)), store=store, lengths=FAR_AHEAD)

        assert await office.backend.reading.states() == {State.SENT: 20}
        assert store.asked == 0


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
        worker = office.worker(
            Pool("task", 2, (a_kind(first_quick),)), store=store, lengths=FAR_AHEAD
        )
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

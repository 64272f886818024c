"""The jobs of a claim go together, and none of them is another one's problem."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from carteiro.email.message import make_email
from carteiro.errors import StoreError
from carteiro.jobs.confirmation import Confirmed
from carteiro.jobs.kind import Pool
from carteiro.model import (
    ZERO,
    Begun,
    Deferred,
    End,
    Late,
    Lease,
    LeasedJob,
    MessageId,
    Outcome,
    Refused,
    Sent,
    Settled,
    Start,
    State,
    Taken,
)
from carteiro.observability.metrics.tally import Tally
from carteiro.ports import Handover, Parcel
from support.builders import a_failure
from support.working import TOO_LONG, Through, a_kind, an_office, until_done


async def test_no_end_is_lost_however_often_handlers_suspend() -> None:
    """They end one by one, together, during a claim and during a settle."""
    numbers = count()

    async def suspends(_parcel: Parcel, _handover: Handover) -> Outcome:
        for _ in range(next(numbers) % 7):
            await asyncio.sleep(0)
        return Taken("")

    async with an_office() as office:
        for _ in range(200):
            await office.task()

        await office.work(Pool("task", 9, (a_kind(suspends),)))

        assert await office.backend.reading.states() == {State.SENT: 200}


async def test_jobs_of_a_claim_are_declared_and_settled_as_lists() -> None:
    """One commit each, not one for every message."""
    sizes: list[tuple[str, int]] = []

    class Counting(Through):
        async def declare(self, starts: Sequence[Start]) -> list[Begun | Refused]:
            sizes.append(("declare", len(starts)))
            return await super().declare(starts)

        async def settle(self, ends: Sequence[End]) -> list[Settled | Late]:
            sizes.append(("settle", len(ends)))
            return await super().settle(ends)

    async with an_office() as office:
        for _ in range(20):
            await office.post()

        async def at_once(_parcel: Parcel, handover: Handover) -> Outcome:
            handover.begin()
            return Taken("id")

        pool = Pool("email", 20, (office.email_kind(deliver=at_once),))
        await office.work(pool, store=Counting(office.backend.store))

        assert sizes == [("declare", 20), ("settle", 20)]


async def test_attempt_that_cannot_be_declared_does_not_stop_the_others() -> None:
    """It is given back, and declared when the store can."""
    tries: list[int] = []

    class Choosy(Through):
        async def declare(self, starts: Sequence[Start]) -> list[Begun | Refused]:
            if bad in {start.lease.job for start in starts} and len(tries) < 3:
                tries.append(len(starts))
                raise ZeroDivisionError
            return await super().declare(starts)

    async with an_office() as office:
        others = [await office.post() for _ in range(3)]
        bad = await office.post()

        await office.work(
            Pool("email", 4, (office.email_kind(),)), store=Choosy(office.backend.store)
        )

        assert {await office.state(each) for each in (*others, bad)} == {State.SENT}
        assert tries[:2] == [4, 1]


async def test_end_that_cannot_be_stored_does_not_stop_the_others() -> None:
    """A taken message is stored as sent, without what the store does not take; others of its list are stored."""
    lists: list[int] = []

    class Choosy(Through):
        async def settle(self, ends: Sequence[End]) -> list[Settled | Late]:
            lists.append(len(ends))
            if any(getattr(each.verdict, "provider_id", "") == "bad" for each in ends):
                raise ZeroDivisionError
            return await super().settle(ends)

    async with an_office() as office:
        messages = [await office.post() for _ in range(3)]

        async def at_once(parcel: Parcel, handover: Handover) -> Outcome:
            handover.begin()
            return Taken("bad" if parcel.message == messages[1] else "good")

        pool = Pool("email", 3, (office.email_kind(deliver=at_once),))
        await office.work(pool, store=Choosy(office.backend.store))

        ids = [(await office.row(each)).provider_id for each in messages]
        assert ids == ["good", "", "good"]
        assert await office.backend.reading.states() == {State.SENT: 3}
        assert lists == [3, 1, 1, 1, 1]


async def test_failures_and_successes_of_a_claim_end_in_one_list() -> None:
    """Each with its own verdict."""
    failed: set[MessageId] = set()

    async def every_other(parcel: Parcel, _handover: Handover) -> Outcome:
        if parcel.message in even and parcel.message not in failed:
            failed.add(parcel.message)
            return Deferred(a_failure())
        return Taken("")

    async with an_office() as office:
        messages = [await office.task() for _ in range(10)]
        even = set(messages[::2])

        await office.work(Pool("task", 10, (a_kind(every_other),)))

        assert failed == even
        assert await office.backend.reading.states() == {State.SENT: 10}


async def test_end_that_the_store_always_refuses_holds_up_no_other() -> None:
    """It is tried again by itself, and others are stored meanwhile."""
    refused: list[int] = []

    class Refusing(Through):
        async def settle(self, ends: Sequence[End]) -> list[Settled | Late]:
            if bad in {end.lease.job for end in ends} and len(refused) < 5:
                refused.append(len(ends))
                raise StoreError("does not fit")
            return await super().settle(ends)

    async def at_once(_parcel: Parcel, _handover: Handover) -> Outcome:
        return Taken("")

    async with an_office() as office:
        before = [await office.task() for _ in range(3)]
        bad = await office.task()
        after = [await office.task() for _ in range(6)]

        pool = Pool("task", 4, (a_kind(at_once),))
        await office.work(pool, store=Refusing(office.backend.store))

        assert {await office.state(each) for each in (*before, bad, *after)} == {State.SENT}
        assert refused == [4, 1, 1, 1, 1]


async def test_call_that_cancels_itself_leaves_nothing_behind() -> None:
    """Its slot is free, others run, and it is given back."""
    tries: list[MessageId] = []

    async def suicidal(parcel: Parcel, _handover: Handover) -> Outcome:
        if parcel.message == bad and len(tries) < 2:
            tries.append(parcel.message)
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)
        return Taken("")

    async with an_office() as office:
        bad = await office.task()
        others = [await office.task() for _ in range(3)]

        await office.work(Pool("task", 1, (a_kind(suicidal),)))

        assert tries == [bad]
        assert {await office.state(each) for each in others} == {State.SENT}
        assert await office.backend.reading.place(bad) is None  # it expired before its next attempt


async def test_call_without_an_outcome_is_its_own_problem() -> None:
    """A provider that returns nothing is broken: its job is given back, the others end with their own results."""
    tries: list[MessageId] = []

    async def broken(parcel: Parcel, _handover: Handover) -> Any:
        if parcel.message == bad and not tries:
            tries.append(parcel.message)
            return None
        return Taken(parcel.message)

    async with an_office() as office:
        first, bad, last = [await office.task() for _ in range(3)]

        await office.work(Pool("task", 3, (a_kind(broken),)))

        ids = [(await office.row(each)).provider_id for each in (first, bad, last)]
        assert ids == [first, None, last]


async def test_single_end_that_the_store_refuses_holds_up_no_other() -> None:
    """Also one that ended alone: the next ones do not wait for it."""
    others_sent = asyncio.Event()

    class Refusing(Through):
        async def settle(self, ends: Sequence[End]) -> list[Settled | Late]:
            if bad in {end.lease.job for end in ends} and not others_sent.is_set():
                raise StoreError("does not fit")
            answers = await super().settle(ends)
            if {end.lease.job for end in ends} & set(others):
                others_sent.set()
            return answers

    async with an_office() as office:
        bad = await office.task()
        others = [await office.task() for _ in range(3)]

        await office.work(
            Pool("task", 1, (a_kind(_at_once),)), store=Refusing(office.backend.store)
        )

        assert {await office.state(each) for each in (bad, *others)} == {State.SENT}


async def test_taken_message_whose_end_cannot_be_stored_is_tried_twice() -> None:
    """As it was, then as sent and nothing else; after that it is given back."""
    tries: list[str] = []

    class Broken(Through):
        async def settle(self, ends: Sequence[End]) -> list[Settled | Late]:
            [end] = ends
            assert isinstance(end.verdict, Sent)
            tries.append(end.verdict.provider_id)
            raise ValueError("this end")

        async def release(self, leases: Sequence[Lease], *, wait: timedelta = ZERO) -> None:
            await super().release(leases, wait=wait)
            given_back.set()

    given_back = asyncio.Event()

    async def named(_parcel: Parcel, _handover: Handover) -> Outcome:
        return Taken("an id")

    async with an_office() as office:
        await office.task()
        worker = office.worker(
            Pool("task", 1, (a_kind(named),)), store=Broken(office.backend.store)
        )
        working = asyncio.create_task(until_done(worker))
        async with asyncio.timeout(TOO_LONG):
            await given_back.wait()
        worker.stop()
        await working

        assert tries == ["an id", "an id", "", ""]  # in a list, then apart


@pytest.mark.parametrize("figure", ["called", "sent"])
async def test_error_in_a_figure_stops_no_settling(
    figure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ends are stored, their slots are free, and the next ones are settled."""
    tally = Tally()
    broken = iter([True])
    monkeypatch.setattr(tally, figure, lambda *_: 1 / 0 if next(broken, False) else None)
    async with an_office() as office:
        for _ in range(6):
            await office.task()

        await office.work(Pool("task", 2, (a_kind(_at_once),)), tally=tally)

        assert await office.backend.reading.states() == {State.SENT: 6}


async def test_panic_in_a_check_fails_one_job() -> None:
    """A BaseException, as extensions raise it, leaks neither the slots nor the jobs of its claim."""

    class Panic(BaseException):
        """It is not an Exception."""

    async with an_office() as office:
        bad = await office.task(ttl=timedelta(days=1))
        others = [await office.task() for _ in range(3)]

        def panics(job: LeasedJob) -> Confirmed:
            if job.lease.job == bad and job.claims == 1 and not seen:
                seen.append(bad)
                raise Panic
            return Confirmed(make_email({"to": "a@example.com", "subject": "s", "text": "t"}), ())

        seen: list[MessageId] = []
        await office.work(Pool("task", 4, (a_kind(_at_once, confirm=panics),)))

        assert {await office.state(each) for each in (bad, *others)} == {State.SENT}


async def _at_once(_parcel: Parcel, _handover: Handover) -> Outcome:
    return Taken("")

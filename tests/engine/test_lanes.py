"""Calls that end at once share a task; nothing of one reaches another."""

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar

import pytest

from carteiro.jobs.kind import Pool
from carteiro.model import MessageId, Outcome, State, Taken
from carteiro.ports import Handover, Parcel
from support.working import A_WHILE, a_kind, an_office

JOBS = 8
_left: ContextVar[str] = ContextVar("_left", default="")


async def _worked_off(handler: object, jobs: int = JOBS) -> Mapping[State, int]:
    async with an_office() as office:
        for _ in range(jobs):
            await office.task()
        await office.work(Pool("task", jobs, (a_kind(handler),)))  # type: ignore[arg-type]
        return await office.backend.reading.states()


async def test_calls_that_end_at_once_share_a_task() -> None:
    tasks = []

    async def ends(_parcel: Parcel, _handover: Handover) -> Outcome:
        tasks.append(id(asyncio.current_task()))  # a reference would end the sharing
        return Taken("")

    assert await _worked_off(ends) == {State.SENT: JOBS}
    assert len(set(tasks)) == 1


async def test_calls_that_wait_have_a_task_each_and_wait_for_nobody() -> None:
    tasks, all_inside = [], asyncio.Event()

    async def waits(_parcel: Parcel, _handover: Handover) -> Outcome:
        tasks.append(asyncio.current_task())
        if len(tasks) == JOBS:
            all_inside.set()
        await all_inside.wait()
        return Taken("")

    assert await _worked_off(waits) == {State.SENT: JOBS}
    assert len(set(tasks)) == JOBS


async def test_end_is_settled_while_the_next_call_waits() -> None:
    begun: list[MessageId] = []
    async with an_office() as office:
        for _ in range(2):
            await office.task()

        async def waits(parcel: Parcel, _handover: Handover) -> Outcome:
            begun.append(parcel.message)
            while begun[1:] and (await office.backend.reading.states()).get(State.SENT) != 1:
                await asyncio.sleep(0)
            return Taken("")

        await office.work(Pool("task", 2, (a_kind(waits),)))
        assert await office.backend.reading.states() == {State.SENT: 2}


async def test_time_limit_in_a_call_cancels_that_call_alone() -> None:
    """`asyncio.timeout` limits the current task: it is the call's own from its first wait on."""
    passed: list[MessageId] = []

    async def limits(parcel: Parcel, _handover: Handover) -> Outcome:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(0 if passed else 60)
        except TimeoutError:
            passed.append(parcel.message)
        return Taken("")

    assert await _worked_off(limits) == {State.SENT: JOBS}
    assert passed


async def test_context_variables_of_a_call_do_not_reach_the_next() -> None:
    seen = []

    async def sets(parcel: Parcel, _handover: Handover) -> Outcome:
        seen.append(_left.get())
        _left.set(parcel.message)
        return Taken("")

    assert await _worked_off(sets) == {State.SENT: JOBS}
    assert set(seen) == {""}


@pytest.mark.parametrize("is_taken_back", [False, True])
async def test_cancel_that_a_call_leaves_behind_does_not_reach_the_next(
    is_taken_back: bool,
) -> None:
    """The call itself had ended: it is sent. Before Python 3.13, `uncancel` leaves the cancel in the task."""
    begun: list[MessageId] = []

    async def cancels(parcel: Parcel, _handover: Handover) -> Outcome:
        begun.append(parcel.message)
        if len(begun) > 1:
            await asyncio.sleep(0)  # where a cancel would come
        else:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            if is_taken_back:
                task.uncancel()
        return Taken("")

    assert await _worked_off(cancels) == {State.SENT: JOBS}
    assert len(begun) == JOBS


async def test_cancel_by_a_timer_does_not_reach_a_later_call() -> None:
    """It would end an e-mail of another tenant in doubt."""
    begun: list[MessageId] = []

    async def cancels(parcel: Parcel, _handover: Handover) -> Outcome:
        begun.append(parcel.message)
        if len(begun) > 1:
            await asyncio.sleep(A_WHILE)
        else:
            task = asyncio.current_task()
            assert task is not None
            asyncio.get_running_loop().call_later(A_WHILE / 2, task.cancel)
        return Taken("")

    assert await _worked_off(cancels) == {State.SENT: JOBS}
    assert len(begun) == JOBS


async def test_no_call_begins_after_stop_now() -> None:
    begun = []

    async with an_office() as office:
        for _ in range(JOBS):
            await office.task()

        async def stops(parcel: Parcel, _handover: Handover) -> Outcome:
            begun.append(parcel.message)
            worker.stop_now()
            await asyncio.sleep(60)
            return Taken("")

        worker = office.worker(Pool("task", JOBS, (a_kind(stops),)))
        await worker.run()

        assert len(begun) == 1
        assert await office.backend.reading.states() == {State.ENQUEUED: JOBS}

"""The loop that runs redrives: one process, each in turn, and no error of one holds up another."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from carteiro.maintenance.redrives import WorkLeft, run_redrives
from carteiro.model import Ramp, RedriveState
from carteiro.ports import Backend
from carteiro.runtime.polling import polls
from support.builders import ACME, BRASA, retry, tenants_named
from support.builders import sent as was_sent
from support.burying import buried, contents_read
from support.clock import StoreClock
from support.quick_store import quick_backend
from support.redriving import advanced, put_into, redriving, shown, started, worked
from support.steps import claimed_alone, declare
from support.working import TOO_LONG

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


async def filled(backend: Backend, clock: StoreClock, number: int, tenant: str = ACME) -> None:
    """Dead letters of an hour ago."""
    await backend.tenants.define(tenants_named([tenant]))
    for _ in range(number):
        await buried(backend, tenant)
    clock.advance(HOUR)


async def test_loop_runs_a_redrive_to_its_end() -> None:
    """While workers send its messages."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        await filled(backend, clock, 8)
        redrive = await started(backend, Ramp(first_rate=100_000, max_rate=100_000))

        async def none_open() -> set[str]:
            return set()

        ways = redriving(backend, none_open)
        loop = run_redrives(backend.upkeep, ways, every=timedelta(milliseconds=1))
        task = asyncio.create_task(loop)
        try:
            async with asyncio.timeout(TOO_LONG):
                async for _ in polls(within=HOUR):
                    clock.advance(SECOND)
                    await worked(backend, was_sent())
                    if (await shown(backend, redrive)).state is RedriveState.FINISHED:
                        break
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

        assert (await shown(backend, redrive)).course.sent == 8


async def test_redrive_reads_no_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of them may be 200 MB of a worker's memory, and it needs their ids alone."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        await filled(backend, clock, 3)
        redrive = await started(backend)
        read = contents_read(monkeypatch)

        await advanced(backend)

        assert ((await shown(backend, redrive)).course.redriven, read) == (3, [])


async def test_open_circuit_of_its_provider_stops_a_redrive() -> None:
    """Others are not concerned."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        await filled(backend, clock, 8)
        redrive = await started(backend)
        await advanced(backend)
        job = await claimed_alone(backend.store, limit=1)
        await declare(backend.store, job, provider="smtp")

        await advanced(backend, open_circuits=["ses"])
        before = await shown(backend, redrive)
        await advanced(backend, open_circuits=["smtp"])
        after = await shown(backend, redrive)

        assert before.state is RedriveState.RUNNING
        assert (after.state, after.course.redriven) == (RedriveState.STOPPED, 5)
        assert after.reason == "The circuit of provider smtp is open."


async def test_messages_that_cannot_be_redriven_do_not_wait_for_the_pace() -> None:
    """100,000 imported entries without content would else take hours, five a second."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        await filled(backend, clock, 8)
        letters = (await backend.dead_letters.find()).rows
        await backend.dead_letters.drop([each.id for each in letters])
        await backend.upkeep.prune(bodies=SECOND, histories=None)
        await backend.dead_letters.restore(letters)
        redrive = await started(backend)

        progress = await advanced(backend)

        assert (progress, (await shown(backend, redrive)).course.skipped) == (WorkLeft.MORE, 5)


async def test_hanging_canary_pauses_a_redrive() -> None:
    """It says so, and redrives nothing more."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        await filled(backend, clock, 8)
        redrive = await started(backend)
        await advanced(backend)
        await worked(backend, retry(HOUR))
        clock.advance(timedelta(minutes=10))
        await advanced(backend)
        paused = await shown(backend, redrive)

        assert (paused.state, paused.course.redriven) == (RedriveState.PAUSED, 5)
        assert paused.reason is not None
        assert paused.reason.startswith("5 of 5 did not end within 10 minutes")


async def test_error_of_one_redrive_does_not_hold_up_others(monkeypatch: Any) -> None:
    """It is tried again in the next round."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        await filled(backend, clock, 1)
        await filled(backend, clock, 1, BRASA)
        bad, good = await started(backend, tenant=ACME), await started(backend, tenant=BRASA)
        watched = backend.redrives.watched

        async def fails(redrive: Any, **asked: Any) -> Any:
            if redrive.id == bad.id:
                raise OSError("broken")
            return await watched(redrive, **asked)

        with monkeypatch.context() as patch:
            patch.setattr(backend.redrives, "watched", fails)
            await advanced(backend)
        between = [(await shown(backend, each)).course.redriven for each in (bad, good)]
        await advanced(backend)

        assert between == [0, 1]
        assert (await shown(backend, bad)).course.redriven == 1


async def test_progress_says_when_to_look_again() -> None:
    """At once, soon, or when there are results."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        assert await advanced(backend) is WorkLeft.NOTHING
        await filled(backend, clock, 8)
        redrive = await started(backend, Ramp(canary=5, first_rate=1, max_rate=1))
        assert await advanced(backend) is WorkLeft.SOON
        assert await advanced(backend) is WorkLeft.NOTHING
        await worked(backend, was_sent())
        assert await advanced(backend) is WorkLeft.SOON
        assert await advanced(backend) is WorkLeft.SOON
        await put_into(backend, redrive, RedriveState.PAUSED)
        assert await advanced(backend) is WorkLeft.NOTHING


async def test_only_the_leader_advances_redrives() -> None:
    """Two processes would only refuse each other's changes."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        await filled(backend, clock, 1)
        redrive = await started(backend)
        await backend.upkeep.lead("redrives", holder="other", term=SECOND)

        assert await advanced(backend) is WorkLeft.NOTHING
        assert (await shown(backend, redrive)).course.redriven == 0

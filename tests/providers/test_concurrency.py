"""Concurrency limit shared by processes: never exceeded, and fully used while any process wants to call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from carteiro.engine.slots import Slots
from carteiro.errors import StoreUnavailable
from carteiro.jobs.kind import Pool
from carteiro.model import Drawn
from carteiro.ports import Rates
from carteiro.providers.rate_limiter import Limits, Pacer
from support.dict_rates import DictRates
from support.virtual_time import run_virtually

SMTP = "smtp"


@dataclass
class Reached:
    """The shared rates as one process reaches them: after a moment, or not at all when a test says so."""

    rates: Rates
    draws: int = 0
    is_away: bool = False

    async def draw(self, provider: str, wanted: int, **asked: Any) -> Drawn:
        """Count it and pass it on."""
        self.draws += 1
        await asyncio.sleep(0.002)
        if self.is_away:
            raise StoreUnavailable("the disk is busy")
        drawn = await self.rates.draw(provider, wanted, **asked)
        await asyncio.sleep(0.002)
        return drawn


@dataclass
class Crowd:
    """Processes that share a concurrency limit, and their number of calls."""

    rates: Rates
    concurrency: int
    call_s: float
    calls: int = 0
    at_once: int = 0
    most_at_once: int = 0
    processes: list["Process"] = field(default_factory=list)

    async def join(self, *, is_away: bool = False) -> "Process":
        """One more process, that calls as often as it may."""
        shared = Reached(self.rates, is_away=is_away)
        loop = asyncio.get_running_loop()
        pacer = Pacer(SMTP, shared, Limits(concurrency=self.concurrency), clock=loop.time)  # type: ignore[arg-type]  # draws are all that is asked for
        process = Process(self, shared, pacer)
        self.processes.append(process)
        await asyncio.sleep(0.3)  # processes do not start in the same moment
        return process

    async def called_in(self, seconds: float) -> int:
        """The number of calls that end in the next seconds."""
        before = self.calls
        await asyncio.sleep(seconds)
        return self.calls - before

    def could_call_in(self, seconds: float) -> float:
        """The number of calls that the whole limit has time for."""
        return self.concurrency * seconds / self.call_s


class Process:
    """Begins calls like a worker: one for each place, and the next when one ends or at the next check."""

    def __init__(self, crowd: Crowd, shared: Reached, pacer: Pacer) -> None:
        self.shared = shared
        self.calls = 0
        self.pacer = pacer
        self._crowd = crowd
        self._slots = Slots(Pool("mail", 1000, ()))
        self._under_way: set[asyncio.Task[None]] = set()
        self._feeding = asyncio.create_task(self._feed())

    async def idle(self) -> None:
        """Call no more, without notice; calls in flight end."""
        self._feeding.cancel()
        with suppress(asyncio.CancelledError):
            await self._feeding
        await asyncio.gather(*self._under_way)

    async def stop(self) -> None:
        """End, as a worker does on a stop."""
        await self.idle()
        await self.pacer.close()

    async def _feed(self) -> None:
        while True:
            wait = self.pacer.wait()
            if wait:
                await self._slots.has_freed_slot(within=timedelta(seconds=wait))
                continue
            self.pacer.take()
            task = asyncio.create_task(self._call())
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _call(self) -> None:
        crowd = self._crowd
        crowd.at_once += 1
        crowd.most_at_once = max(crowd.most_at_once, crowd.at_once)
        self._slots.take(1)
        await asyncio.sleep(crowd.call_s)
        crowd.at_once -= 1
        crowd.calls += 1
        self.calls += 1
        self.pacer.ended()
        self._slots.give_back()


@asynccontextmanager
async def a_crowd(concurrency: int, *, call_s: float = 0.1) -> AsyncIterator[Crowd]:
    """No process calls yet."""
    loop = asyncio.get_running_loop()
    crowd = Crowd(DictRates(lambda: int(loop.time() * 1000)), concurrency, call_s)
    try:
        yield crowd
    finally:
        for process in crowd.processes:
            await process.stop()


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("processes", range(1, 7))
def test_limit_is_fully_used_and_never_exceeded(processes: int, concurrency: int) -> None:
    """With any number of callers, also far more than the limit; and the store is rarely called."""

    async def work() -> None:
        async with a_crowd(concurrency) as crowd:
            for _ in range(processes):
                await crowd.join()

            called = await crowd.called_in(60)

            assert called >= 0.9 * crowd.could_call_in(60)
            assert crowd.most_at_once == concurrency
            assert sum(each.shared.draws for each in crowd.processes) <= 70 * processes

    run_virtually(work())


@pytest.mark.parametrize("call_s", [0.01, 0.05, 1.0, 7.0])
def test_freed_place_is_used_at_once(call_s: float) -> None:
    """Polling would make short calls slow."""

    async def work() -> None:
        async with a_crowd(10, call_s=call_s) as crowd:
            await crowd.join()

            called = await crowd.called_in(70)

            assert called >= 0.85 * crowd.could_call_in(70)
            assert crowd.most_at_once == 10

    run_virtually(work())


@pytest.mark.parametrize("concurrency", [1, 2, 3])
def test_places_of_a_leaving_process_are_used_by_the_others(concurrency: int) -> None:
    """Stopped or idle; the last one has them all."""

    async def work() -> None:
        async with a_crowd(concurrency) as crowd:
            for _ in range(5):
                await crowd.join()
            await crowd.called_in(5)
            for number, process in enumerate(crowd.processes[:-1]):
                await (process.idle() if number % 2 else process.stop())
                called = await crowd.called_in(20)

                assert called >= 0.8 * crowd.could_call_in(20)

            assert crowd.most_at_once == concurrency

    run_virtually(work())


@pytest.mark.parametrize("concurrency", [1, 2, 5])
def test_process_without_the_store_gives_up_its_places_before_others_get_them(
    concurrency: int,
) -> None:
    """The others have all of them, and no more; once it is back, it shares as before."""

    async def work() -> None:
        async with a_crowd(concurrency) as crowd:
            for _ in range(3):
                await crowd.join()
            await crowd.called_in(5)
            cut_off = crowd.processes[0]
            cut_off.shared.is_away = True
            await crowd.called_in(10)
            before = cut_off.calls
            called = await crowd.called_in(20)
            while_away = cut_off.calls - before
            cut_off.shared.is_away = False
            for process in crowd.processes[1:]:
                await process.stop()
            after = await crowd.called_in(20)

            assert while_away == 0
            assert called >= 0.9 * crowd.could_call_in(20)
            assert after >= 0.8 * crowd.could_call_in(20)
            assert crowd.most_at_once == concurrency

    run_virtually(work())


def test_process_that_never_reached_the_store_has_no_place() -> None:
    """Another process could have the same one."""

    async def work() -> None:
        async with a_crowd(3) as crowd:
            deaf = await crowd.join(is_away=True)
            await crowd.join()

            called = await crowd.called_in(30)

            assert deaf.calls == 0
            assert called >= 0.9 * crowd.could_call_in(30)
            assert crowd.most_at_once == 3

    run_virtually(work())

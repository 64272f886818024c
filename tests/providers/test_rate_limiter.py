"""Rate limit of one provider in each process: drawn ahead, in the background, and never a reason to stop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from carteiro.errors import StoreUnavailable
from carteiro.model import Drawn, ProviderRate
from carteiro.ports import Rates
from carteiro.ports.provider import Quota
from carteiro.providers.rate_limiter import Limits, Pacer
from support.clock import StoreClock
from support.dict_rates import DictRates
from support.working import logged

SES = "ses:eu-west-1"
SECOND = timedelta(seconds=1)


@dataclass
class Watched:
    """The shared rates with a count of calls; unreachable when a test says so."""

    rates: Rates
    draws: int = 0
    is_away: bool = False

    async def draw(self, provider: str, count: int, **asked: Any) -> Drawn:
        """Count it and pass it on."""
        self.draws += 1
        if self.is_away:
            raise StoreUnavailable("the disk is busy")
        return await self.rates.draw(provider, count, **asked)

    async def slow_down(self, provider: str, *, going: float) -> None:
        if self.is_away:
            raise StoreUnavailable("the disk is busy")
        await self.rates.slow_down(provider, going=going)

    async def report(
        self, provider: str, *, why: str | None, wait: timedelta = timedelta(0)
    ) -> None:
        if self.is_away:
            raise StoreUnavailable("the disk is busy")
        await self.rates.report(provider, why=why, wait=wait)

    async def show(self) -> list[ProviderRate]:
        return await self.rates.show()


@dataclass
class Bench:
    """Processes that share a store; time passes when a test says so."""

    clock: StoreClock
    shared: Watched
    pacers: list[Pacer] = field(default_factory=list)

    def pacer(self, limits: Limits) -> Pacer:
        """The rate limiter of one more process."""
        made = Pacer(SES, self.shared, limits, clock=lambda: self.clock() / 1000)
        self.pacers.append(made)
        return made

    async def pass_by(self, time: timedelta = timedelta(0)) -> None:
        """Let time pass, and calls in flight end."""
        self.clock.advance(time)
        for _ in range(10):
            await asyncio.sleep(0)

    async def ready(self, limits: Limits) -> Pacer:
        """The rate limiter of one more process, that has drawn."""
        made = self.pacer(limits)
        made.wait()
        await self.pass_by()
        assert not made.wait()
        return made

    async def together(self, limits: Limits) -> tuple[Pacer, Pacer]:
        """The rate limiters of two more processes, that have shared the places."""
        first, second = self.pacer(limits), self.pacer(limits)
        for _ in range(3):
            for each in (first, second):
                if not each.wait():
                    each.take()
                    each.ended()
                await self.pass_by()
            await self.pass_by(SECOND)
        return first, second


@asynccontextmanager
async def a_bench() -> AsyncIterator[Bench]:
    """No process calls yet."""
    clock = StoreClock()
    bench = Bench(clock, Watched(DictRates(clock)))
    try:
        yield bench
    finally:
        for pacer in bench.pacers:
            await pacer.close()


def called(pacer: Pacer, most: int = 1000) -> int:
    """Call as often as allowed; the number of calls."""
    count = 0
    while count < most and not pacer.wait():
        pacer.take()
        pacer.ended()
        count += 1
    return count


async def test_provider_without_limits_costs_nothing() -> None:
    """The store is never called."""
    async with a_bench() as bench:
        free = bench.pacer(Limits())

        assert called(free) == 1000
        assert (free.room(), free.rate) == (None, None)
        await bench.pass_by(SECOND)
        assert bench.shared.draws == 0


async def test_first_call_waits_for_a_draw() -> None:
    """Then there is room for the drawn number."""
    async with a_bench() as bench:
        pacer = bench.pacer(Limits(per_second=10))
        before = pacer.wait()
        await bench.pass_by()

        assert before > 0
        assert (pacer.wait(), pacer.room()) == (0.0, 5)
        assert pacer.rate == 10.0


async def test_two_processes_stay_within_the_rate_and_rarely_call_the_store() -> None:
    """Over several seconds at full speed; never one round trip a call."""
    async with a_bench() as bench:
        both = [bench.pacer(Limits(per_second=100)) for _ in range(2)]
        calls = [0, 0]
        for _ in range(500):
            for index, each in enumerate(both):
                calls[index] += called(each)
            await bench.pass_by(timedelta(milliseconds=10))

        assert 400 <= sum(calls) <= 5 * 100 + 100
        assert min(calls) > 0
        assert bench.shared.draws < 100
        assert all(each.held_back for each in both)


async def test_unused_draw_expires() -> None:
    """Another process has had it by then."""
    async with a_bench() as bench:
        pacer = await bench.ready(Limits(per_second=10))
        await bench.pass_by(SECOND)

        assert pacer.room() == 0


async def test_call_that_is_not_made_is_left_for_another() -> None:
    """A message that must not be sent costs the others nothing."""
    async with a_bench() as bench:
        pacer = await bench.ready(Limits(per_second=4, concurrency=4))
        before = pacer.room()
        pacer.take()
        taken = pacer.room()
        pacer.unused()

        assert (before, taken, pacer.room()) == (4, 3, 4)


async def test_processes_share_the_concurrency_limit() -> None:
    """Each an equal part: a new one waits until the others, with their next call, give theirs back."""
    async with a_bench() as bench:
        limits = Limits(concurrency=4)
        first, second = await bench.ready(limits), bench.pacer(limits)
        alone = first.room()
        second.wait()
        await bench.pass_by()
        none = (second.room(), second.wait())
        await bench.pass_by(SECOND)
        first.take()
        await bench.pass_by()
        second.wait()
        await bench.pass_by()

        assert (alone, none[0]) == (4, 0)
        assert none[1] > 0
        assert (first.room(), second.room()) == (1, 2)


async def test_idle_process_gives_its_places_back() -> None:
    """After a moment, not when its stay ends; it gets them again with its next call."""
    async with a_bench() as bench:
        idle = await bench.ready(Limits(concurrency=4))
        await bench.pass_by(SECOND)
        idle._announce()
        idle_room = idle.room()
        await bench.pass_by()
        other = await bench.ready(Limits(concurrency=4))
        had = other.room()
        await bench.pass_by(SECOND)
        other._announce()
        await bench.pass_by()
        idle.wait()
        await bench.pass_by()

        assert (idle_room, had, idle.room()) == (0, 4, 4)


async def test_store_is_rarely_called_while_all_places_are_taken() -> None:
    """A freed place of this process is signalled, one of others comes late anyway."""
    async with a_bench() as bench:
        pacer = await bench.ready(Limits(concurrency=1))
        pacer.take()
        await bench.pass_by()
        before = bench.shared.draws
        waits = set()
        for _ in range(50):
            waits.add(pacer.wait())
            await bench.pass_by(timedelta(milliseconds=5))

        assert waits == {0.25}
        assert bench.shared.draws == before


async def test_process_with_a_long_call_still_counts() -> None:
    """Although it draws nothing for it."""
    async with a_bench() as bench:
        busy = await bench.ready(Limits(concurrency=4))
        busy.take()
        other = bench.pacer(Limits(concurrency=4))
        for second in range(10):
            await bench.pass_by(SECOND)
            busy._announce()
            if second >= 5:  # longer than a stay
                other.wait()

        assert (busy.room(), other.room()) == (1, 2)


async def test_stopped_process_frees_its_part_at_once() -> None:
    """Before its stay ends."""
    async with a_bench() as bench:
        stopped = await bench.ready(Limits(concurrency=4))
        await stopped.close()

        assert (await bench.ready(Limits(concurrency=4))).room() == 4


async def test_throttling_slows_every_process_and_wears_off() -> None:
    """One gets the answer, at once; the others with their next draw."""
    async with a_bench() as bench:
        hit, other = [await bench.ready(Limits(per_second=10)) for _ in range(2)]
        for _ in range(3):
            hit.throttled()
        at_once = (hit.wait() > 0, hit.rate)
        await bench.pass_by()
        rates = []
        for _ in range(11):
            await bench.pass_by(SECOND)
            called(other)
            await bench.pass_by()
            rates.append(other.rate)

        assert at_once == (True, 5.0)
        assert rates[0] == 5.5
        assert rates[-1] == 10.0


async def test_throttling_limits_an_unlimited_provider_until_it_recovers() -> None:
    """It starts at the current speed; afterwards there is no limit again."""
    async with a_bench() as bench:
        pacer = bench.pacer(Limits())
        assert called(pacer, 40) == 40
        pacer.throttled()
        await bench.pass_by()
        cut = pacer.rate
        for _ in range(40):
            await bench.pass_by(SECOND)
            called(pacer)
        draws = bench.shared.draws
        await bench.pass_by(SECOND)

        assert cut == 20.0
        assert called(pacer) == 1000
        assert (pacer.rate, bench.shared.draws) == (None, draws)


async def test_throttling_of_one_process_limits_another_without_a_rate() -> None:
    """It learns of it with its next report, and its unlimited calls end."""
    async with a_bench() as bench:
        hit, other = await bench.together(Limits(concurrency=100))
        called(hit, 40)
        hit.throttled()
        await bench.pass_by()
        before = called(other)
        await bench.pass_by(SECOND)
        called(other, 1)
        await bench.pass_by()

        assert before == 1000
        assert called(other) < 40
        assert other.rate == 22.0


async def test_process_without_the_store_goes_on_at_its_part_of_the_last_rate() -> None:
    """Mail is not stopped by a record that cannot be read; it is logged once."""
    async with a_bench() as bench:
        both = [await bench.ready(Limits(per_second=100)) for _ in range(2)]
        await bench.pass_by(SECOND)
        called(both[0])
        await bench.pass_by()
        bench.shared.is_away = True
        calls = 0
        with logged() as lines:
            for _ in range(500):
                calls += called(both[0])
                await bench.pass_by(timedelta(milliseconds=10))
        bench.shared.is_away = False
        await bench.pass_by(SECOND)
        called(both[0])
        await bench.pass_by()

        assert 200 <= calls <= 5 * 50 + 150
        assert [line["event"] for line in lines] == ["rates.away"]
        assert both[0].rate == 100.0


async def test_store_that_was_never_reachable_stops_nothing_either() -> None:
    """A configured rate is kept; throttling still slows it."""
    async with a_bench() as bench:
        bench.shared.is_away = True
        limited = await bench.ready(Limits(per_second=10))

        assert limited.room() == 5
        limited.throttled()
        await bench.pass_by(2 * SECOND)
        assert limited.rate == 5.0


async def test_throttling_that_could_not_be_reported_is_reported_later() -> None:
    """With the next successful draw, once; until then only this process is slower."""
    async with a_bench() as bench:
        hit, other = [await bench.ready(Limits(per_second=100)) for _ in range(2)]
        bench.shared.is_away = True
        hit.throttled()
        for _ in range(20):
            await bench.pass_by(SECOND / 10)
            called(hit)
        draws_away, alone = bench.shared.draws, hit.rate
        bench.shared.is_away = False
        for _ in range(2):
            await bench.pass_by(SECOND / 2)
            called(hit)
        await bench.pass_by()
        called(other)
        await bench.pass_by()

        assert draws_away < 20
        assert alone == 50.0
        assert other.rate == 50.0


async def test_places_without_a_rate_are_drawn_by_the_second_not_by_the_call() -> None:
    """They do not run low."""
    async with a_bench() as bench:
        pacer = await bench.ready(Limits(concurrency=50))
        calls = 0
        for _ in range(100):
            calls += called(pacer, 10)
            await bench.pass_by(SECOND / 10)

        assert calls == 1000
        assert bench.shared.draws <= 11


async def test_quota_is_fetched_first_and_regularly() -> None:
    """Calls wait for the first answer; a raised quota is noticed."""
    async with a_bench() as bench:
        asked: list[float] = []

        async def quota() -> Quota:
            asked.append(14.0 + len(asked))
            return Quota(asked[-1], None, 0)

        pacer = bench.pacer(Limits(quota=quota))
        first = pacer.wait()
        await bench.pass_by()
        pacer.wait()
        await bench.pass_by()
        rate = pacer.rate
        await bench.pass_by(timedelta(minutes=10))
        pacer.wait()
        await bench.pass_by(SECOND)
        pacer.wait()
        await bench.pass_by(SECOND)

        assert first > 0
        assert rate == 14.0
        assert asked == [14.0, 15.0]
        pacer.wait()
        await bench.pass_by()
        assert pacer.rate == 15.0


async def test_missing_quota_limits_nothing() -> None:
    """A key without permission sends all the same; an answer that never comes is not waited for."""
    async with a_bench() as bench:

        async def refused() -> Quota | None:
            return None

        async def never() -> Quota | None:
            await asyncio.Event().wait()
            return None

        denied, silent = bench.pacer(Limits(quota=refused)), bench.pacer(Limits(quota=never))
        waits = [denied.wait() > 0, silent.wait() > 0]
        await bench.pass_by(SECOND)
        denied.wait()
        await bench.pass_by()

        assert waits == [True, True]
        assert called(denied) == called(silent) == 1000
        await bench.pass_by(30 * SECOND)
        assert called(denied) == called(silent) == 1000
        assert bench.shared.draws == 1, "once, whether others know"


async def test_quota_known_to_other_processes_is_kept() -> None:
    """Of processes that start together, only the first may get an answer."""
    async with a_bench() as bench:
        answers = [Quota(14.0, None, 0), None]

        async def quota() -> Quota | None:
            return answers.pop(0)

        for _ in range(2):
            pacer = bench.pacer(Limits(quota=quota))
            pacer.wait()
            await bench.pass_by()
            pacer.wait()
            await bench.pass_by()

        assert [each.rate for each in bench.pacers] == [14.0, 14.0]
        assert answers == []


async def test_configured_rate_wins_over_a_quota() -> None:
    """There is no call for the quota."""
    async with a_bench() as bench:

        async def quota() -> Quota | None:
            raise AssertionError("asked")

        pacer = await bench.ready(Limits(per_second=3, quota=quota))

        assert pacer.rate == 3.0


async def test_failing_quota_call_is_reported_and_limits_nothing() -> None:
    """It is a bug, and no reason to send nothing."""
    async with a_bench() as bench:

        async def broken() -> Quota | None:
            raise RuntimeError("broken")

        with logged() as lines:
            pacer = bench.pacer(Limits(quota=broken))
            for _ in range(2):
                pacer.wait()
                await bench.pass_by()

            assert called(pacer) == 1000

        assert [line["event"] for line in lines] == ["unexpected"]


async def test_report_is_sent_before_the_process_ends() -> None:
    """With an unreachable store only the report is lost."""
    async with a_bench() as bench:
        pacer = bench.pacer(Limits())
        bench.shared.is_away = True
        pacer.report("lost", SECOND)
        await bench.pass_by()
        bench.shared.is_away = False
        pacer.report("NETWORK_ERROR: away", SECOND)
        await pacer.close()

        [shown] = await bench.shared.show()
    assert (shown.is_open, shown.trouble) == (True, "NETWORK_ERROR: away")

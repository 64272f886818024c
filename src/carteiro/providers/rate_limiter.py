"""Rate limiter of one provider: this process's share of the limit, drawn from the store a second ahead.

While calls are left, choosing the provider costs nothing. When they run low, more are drawn in the background, never
one by one; without any, the provider is called later. If the store is unreachable, this process continues at its
share of the last known rate, with the concurrency that it has until then.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from math import ceil, inf
from typing import Any, TypeAlias

from uuid_utils import uuid4

from carteiro.model import ZERO, Drawn, value
from carteiro.observability import log
from carteiro.policy import rates
from carteiro.ports.provider import Quota
from carteiro.ports.rates import Rates
from carteiro.providers.concurrency import Places

AskQuota: TypeAlias = Callable[[], Awaitable[Quota | None]]

STAY = timedelta(seconds=5)  # a silent process counts for this time
_PLACES_FOR_S = 3.0  # of a stay: what is begun then mostly ends before another has the place
_ANNOUNCED_FOR_S = 1.0  # then it says again that it is there
_FEWEST = 5  # calls drawn at once by a process that made none lately
_GOOD_FOR_S = 1.0  # calls that are not used by then expire
_DRY_S = 0.2  # between draws while there is less than is asked for
_A_MOMENT_S = 0.005  # as long as an answer of the store is waited for
_FULL_S = 0.25  # between looks for a free place, while all are taken
_PATIENCE_S = 2.0  # with the store
_QUOTA_EVERY_S = 600.0
# Pause after an unanswered request of the quota: SES limits how often it may be asked.
_QUOTA_AGAIN_S = 60.0
_QUOTA_PATIENCE_S = 1.0  # the first call waits at most this time for the first answer
_CUT_EVERY_S = rates.CUT_EVERY_US / 1_000_000


@value
class Limits:
    """Limits of a provider over all processes; 0: no limit. ``quota`` is asked if no rate is set."""

    per_second: float = 0.0
    concurrency: int = 0
    quota: AskQuota | None = None


class Pacer:
    """The pace of one provider in this process.

    The life of a call: `take` a place when the provider is chosen; `ended` when it is over, or `unused` when
    it was never made. `throttled` when the provider says that it is called too fast.
    """

    def __init__(
        self,
        provider: str,
        shared: Rates,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._provider = provider
        self._shared = shared
        self._places = Places(limits.concurrency)
        self._quota = None if limits.per_second else limits.quota
        self._clock = clock
        self._process = str(uuid4())
        self._ceiling = limits.per_second or (None if self._quota else rates.ANY)
        self._is_limited = bool(limits.per_second or limits.concurrency)
        self._is_announced = False

        self._tokens = 0.0  # calls that may be made; infinite: any number
        self._drawn = 0.0  # size of the last draw
        self._good_until = -inf
        self._draw_from = -inf
        self._announce_from = -inf
        self._rate: float | None = limits.per_second or None  # of all processes, as last heard
        self._processes = 1
        self._gives_places_back = False
        self._alone = rates.fresh(provider)  # used while the store is unreachable
        self._is_away = False

        self._spent = 0  # since the last draw
        self._count, self._count_from, self._speed = 0, clock(), 0.0
        self._ask_from = -inf
        self._answer_by = -inf
        self._complaint: float | None = None  # how fast we were when the provider complained
        self._cut_again_from = -inf
        self._refreshing: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._reports: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_held = False
        self.held_back = 0  # number of times that no call could be made

    # --- what may be called

    @property
    def rate(self) -> float | None:
        """Calls a second of all processes together, as last heard; None: as fast as they can."""
        return self._rate if self._is_limited else None

    def wait(self) -> float:
        """Seconds until a call can be made; 0.0: now."""
        if not self._is_limited and self._quota is None:
            return 0.0
        now = self._clock()
        if self._quota is not None and now >= self._ask_from:
            self._ask(now)
        if now < self._answer_by:
            return _A_MOMENT_S
        if not self._is_limited:
            return 0.0
        self._places.want(now)
        if self._free(now):
            return 0.0
        if self._places.are_taken(now):
            self._hold_back()
            if now >= self._announce_from:
                self._refresh(now)
            return _FULL_S
        self._refresh(now)
        if now < self._draw_from:
            self._hold_back()
        return max(_A_MOMENT_S, self._draw_from - now)

    def room(self) -> int | None:
        """The number of calls that can begin now; None: no limit."""
        if not self._is_limited:
            return None
        free = self._free(self._clock())
        return None if free == inf else int(free)

    def take(self) -> None:
        """The provider was chosen for a call."""
        now = self._clock()
        self._measure(now)
        self._places.taken += 1
        if not self._is_limited:
            return
        self._tokens -= 1
        self._spent += 1
        self._is_held = False
        if self._tokens < self._drawn / 2 or now >= self._announce_from:
            self._refresh(now)

    def unused(self) -> None:
        """A call is not made after all: another one can be."""
        self._tokens += self._is_limited
        self.ended()

    def ended(self) -> None:
        """A call is over."""
        self._places.taken -= 1

    def throttled(self) -> None:
        """The provider throttles: call it more slowly at once, in all processes."""
        now = self._clock()
        if now < self._cut_again_from:
            return
        self._cut_again_from = now + _CUT_EVERY_S
        going = self._rate or max(self._speed, self._count, 1.0)
        self._is_limited = True
        self._rate, self._tokens, self._complaint = going / 2, 0.0, going
        self._draw_from = now
        self._refresh(now)

    def report(self, why: str | None, wait: timedelta = ZERO) -> None:
        """Report to all processes that the circuit is open for this time, and why; None: it is closed again."""
        task = self._begun(self._reported(why, wait), self._reports.discard)
        self._reports.add(task)

    async def _reported(self, why: str | None, wait: timedelta) -> None:
        with suppress(Exception):  # the log has said it
            async with asyncio.timeout(_PATIENCE_S):
                await self._shared.report(self._provider, why=why, wait=wait)

    async def close(self) -> None:
        """End running tasks; other processes get our share at once."""
        if self._timer is not None:
            self._timer.cancel()
        self._complaint = None
        await asyncio.gather(*self._reports)
        tasks = [task for task in (self._refreshing, self._asking) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._is_announced:
            await self._leave()

    def _free(self, now: float) -> float:
        """The number of calls left: drawn, not expired, and within the concurrency limit."""
        if now >= self._good_until:
            return 0.0
        return max(0.0, min(self._tokens, self._places.free(now)))

    def _hold_back(self) -> None:
        self.held_back += not self._is_held
        self._is_held = True

    def _measure(self, now: float) -> None:
        """Measure the calls a second of this process."""
        passed = now - self._count_from
        if passed >= 1.0:
            self._speed, self._count, self._count_from = self._count / passed, 0, now
        self._count += 1

    # --- what is shared

    def _refresh(self, now: float) -> None:
        """Draw more in the background, unless a draw is running or it is too soon."""
        if self._refreshing is None and now >= self._draw_from:
            self._refreshing = self._begun(self._draw(), self._refreshed)

    def _refreshed(self, _: "asyncio.Task[None]") -> None:
        self._refreshing = None
        if self._gives_places_back:  # waiting processes must not depend on our next call
            self._gives_places_back, self._draw_from = False, -inf
            self._refresh(self._clock())
        elif self._complaint is not None:
            self._refresh(self._clock())

    async def _draw(self) -> None:
        """Report throttling, if there was any, and draw."""
        going, self._complaint = self._complaint, None
        count, asked_at = self._wanted(), self._clock()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                if going is not None:
                    await self._shared.slow_down(self._provider, going=going)
                    going = None
                drawn = await self._asked(count)
        except Exception as error:  # noqa: BLE001 - whatever it is, mail is sent all the same
            drawn = self._drawn_alone(count, error)
        else:
            self._heard_from_store(drawn, asked_at)
        if self._complaint is None:  # what was drawn before one is not used
            self._apply(drawn, self._clock())
            self._complaint = going  # it was not reported: the next draw reports it

    def _wanted(self) -> int:
        """Twice the calls since the last draw; at most this process's share of one second, less the calls left."""
        count, self._spent = max(_FEWEST, 2 * self._spent), 0
        if self._rate is None or self._tokens == inf:
            return count
        part = ceil(self._rate / self._processes)
        left = self._tokens if self._clock() < self._good_until else 0
        return max(0, min(count, part - int(left)))

    async def _asked(self, count: int, *, stay: timedelta = STAY) -> Drawn:
        self._is_announced = stay > ZERO
        return await self._shared.draw(
            self._provider,
            count,
            process=self._process,
            stay=stay,
            ceiling=self._ceiling,
            concurrency=self._places.concurrency,
            holds=self._places.held(self._clock()),
        )

    def _heard_from_store(self, drawn: Drawn, asked_at: float) -> None:
        self._is_away = False
        if drawn.places is not None:
            until = asked_at + _PLACES_FOR_S
            self._gives_places_back = self._places.give(drawn.places, until=until)
        self._rate, self._processes = drawn.rate, max(1, drawn.processes)
        self._is_limited = drawn.rate is not None or self._places.concurrency > 0

    def _drawn_alone(self, count: int, error: Exception) -> Drawn:
        """This process's share of the last known rate."""
        if not self._is_away:
            log.rates_away(self._provider, error)
        self._is_away = True
        known = self._rate or self._ceiling or rates.ANY
        drawn, self._alone = rates.draw(
            self._alone,
            count,
            int(self._clock() * 1_000_000),
            process="",
            stay=ZERO,
            ceiling=known / self._processes,
        )
        return drawn

    def _apply(self, drawn: Drawn, now: float) -> None:
        is_left = now < self._good_until and self._tokens < inf
        left = max(0.0, self._tokens) if is_left else 0.0
        self._tokens = inf if drawn.rate is None else left + drawn.granted
        self._drawn = self._tokens
        good_for = STAY.total_seconds() if drawn.rate is None else max(_GOOD_FOR_S, 1 / drawn.rate)
        self._good_until = now + good_for
        self._announce_from = now + _ANNOUNCED_FOR_S
        self._draw_from = now
        if drawn.wait > ZERO or self._is_away:
            spread = 0.75 + random.random() / 2  # noqa: S311 - processes must not ask in step
            self._draw_from += max(drawn.wait.total_seconds(), _DRY_S * spread)
        if self._places.concurrency and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_ANNOUNCED_FOR_S, self._announce)

    def _announce(self) -> None:
        """Announce this process while it calls or wants to; otherwise other processes get its places.

        A process that left while it waits for a place would be the last in line again, and never get one.
        """
        now = self._clock()
        self._timer = None
        if self._places.are_needed(now):
            self._draw_from = -inf
            self._refresh(now)
        elif self._refreshing is None:
            self._places.give_up()
            self._refreshing = self._begun(self._leave(), self._refreshed)

    async def _leave(self) -> None:
        """Leave at once, so that others need not wait until this process expires."""
        with suppress(Exception):  # then it ends by itself
            async with asyncio.timeout(_PATIENCE_S):
                await self._asked(0, stay=ZERO)

    # --- what the provider allows

    def _ask(self, now: float) -> None:
        if self._ask_from == -inf:
            self._answer_by = now + _QUOTA_PATIENCE_S
        self._ask_from = now + _QUOTA_EVERY_S
        self._asking = self._begun(self._ask_quota(), self._heard_quota)

    async def _ask_quota(self) -> None:
        if self._quota is None:
            return
        quota = await self._quota()
        if quota is not None and quota.per_second > 0:
            self._ceiling = quota.per_second

    def _heard_quota(self, asking: "asyncio.Task[None]") -> None:
        """If the report failed, other processes report it with their next draw."""
        self._asking = None
        self._answer_by = -inf
        if not asking.cancelled() and (error := asking.exception()) is not None:
            log.unexpected("quota", error)
        if self._ceiling is None:
            self._ask_from = self._clock() + _QUOTA_AGAIN_S
        if not self._is_limited:
            self._is_limited, self._good_until = True, -inf

    def _begun(
        self, work: Coroutine[Any, Any, None], done: Callable[["asyncio.Task[None]"], None]
    ) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(done)
        return task

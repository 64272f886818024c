"""The end of an execution: done, tried again after a while, or dead.

In: tickets whose handlers have returned, as lists. What Redis must hear of them is gathered, and said in one
round trip for all. If we are killed before, a failure is not counted, and its ticket runs once more.
"""

import asyncio
import random
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from operator import attrgetter

from carteiro.config import TicketSettings
from carteiro.model import Dead, Delivery, Retry
from carteiro.path.judge import judge
from carteiro.tickets.consume.commits import Committer
from carteiro.tickets.consume.dead_lettering import DeadLettering
from carteiro.tickets.consume.failures import death_of
from carteiro.tickets.consume.handler_error import HandlerError
from carteiro.tickets.consume.lanes import Lanes, Line, Partition, Work
from carteiro.tickets.consume.ports import FailureCounter
from carteiro.tickets.consume.watch import Watch
from carteiro.tickets.ticket import Ticket

_FOR_EVER = timedelta.max
# Between two round trips: the first failure is counted at once, those after it together.
_GATHER_S = 0.02


@dataclass
class Settling:
    """Settles tickets; ``wake`` is called when one of them may run again."""

    settings: TicketSettings
    counter: FailureCounter
    lanes: Lanes
    commits: Committer
    dead_lettering: DeadLettering
    watch: Watch
    wake: Callable[[], None]
    _untold: list[Work] = field(default_factory=list)  # what Redis must hear of
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _told: asyncio.Event = field(default_factory=asyncio.Event)
    _chance: Callable[[], float] = random.Random().random  # noqa: S311 - jitter, not a secret

    def settle(self, line: Line, returned: Sequence[Work]) -> None:
        """Handlers of a type have returned, in this order; it matters to the share of failures."""
        live = [work for work in returned if work.partition.is_live]
        if len(live) < len(returned):
            line.health.breaker.unused(time.monotonic())
        failed = [at for at, work in enumerate(live) if work.error is not None]
        if failed or not line.health.is_perfect:
            self._judge_health(line, live, failed)
        self._succeeded(line, [work for work in live if work.error is None] if failed else live)
        for at in failed:
            self._tell(live[at])

    def _judge_health(self, line: Line, works: Sequence[Work], failed: Sequence[int]) -> None:
        """Pause the type if too many of its tickets cannot reach something; a success ends that."""
        now, health, begin = time.monotonic(), line.health, 0
        for at in (*failed, len(works)):
            if at > begin and not health.is_perfect:
                # Only in a pause it matters which of them was a trial.
                trials = [w.began for w in works[begin:at]] if health.is_paused else []
                if health.succeeded(trials or [None] * (at - begin), now):
                    self.resume(line)
                    self.watch.pause_ended(line.type)
            begin = at + 1
            if at < len(works):
                self._notice(works[at], line, now)

    async def run(self) -> None:
        """Tell Redis what it must hear, until it is cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            untold, self._untold = self._untold, []
            recovered = [work for work in untold if work.error is None]
            await self._count([work for work in untold if work.error is not None])
            await self._forget(recovered)
            self._told.set()
            self.commits.look_around()
            self.wake()
            await asyncio.sleep(_GATHER_S)

    async def drained(self, partitions: Collection[Partition], patience: timedelta) -> None:
        """Wait until Redis has heard all of them, or the patience is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience.total_seconds()):
                while any(each.untold for each in partitions):
                    self._told.clear()
                    await self._told.wait()

    # --- done -------------------------------------------------------------------------------------

    def _succeeded(self, line: Line, works: Sequence[Work]) -> None:
        at_once = [work for work in works if not (work.failures or work.redrives)]
        line.done_at_once += len(at_once)
        self.ended(at_once)
        for work in works if len(at_once) < len(works) else ():
            if work.failures:
                # Killed before the commit, the next owner must not begin again with the first attempt.
                self._tell(work)
            elif work.redrives:
                self._done(work)

    async def _forget(self, works: Sequence[Work]) -> None:
        live = [work for work in works if work.partition.is_live]
        if live:
            await self.counter.ended([(w.ticket.id, w.ticket.record.place) for w in live])
        for work in works:
            work.partition.untold.discard(work)
            if work.partition.is_live:
                self._done(work)

    def _done(self, work: Work) -> None:
        self.watch.metrics.done(work.ticket.type, failures=work.failures)
        if not self.dead_lettering.tell_done(work):
            self.ended([work])

    def ended(self, works: Sequence[Work]) -> None:
        """They need nothing any more: the log may forget them, and the next ones of their keys could start."""
        self.leave(works)
        self.lanes.ended(works)

    def leave(self, works: Sequence[Work]) -> None:
        """The log may forget them."""
        for partition, some in groupby(works, key=attrgetter("partition")):
            left = [*some]
            partition.offsets.finish([work.offset for work in left])
            partition.bytes -= sum([work.size for work in left])
        self.commits.changed()

    # --- failed -----------------------------------------------------------------------------------

    def _notice(self, work: Work, line: Line, now: float) -> None:
        """Pause its type if too many cannot reach something. The failure is the ticket's own all the same.

        One that failed before says nothing of others: many such come together, when their waits are over.
        """
        asked, error = self.settings, work.error
        counts = asked.pause and (line.health.is_paused or not work.failures)
        if not counts or error is None or error.names.isdisjoint(asked.pause_errors.split()):
            line.health.breaker.unused(now)
        elif line.health.failed(work.began, now, self._chance(), id=work.ticket.id):
            line.end_of_pause = asyncio.get_running_loop().call_later(
                asked.pause_at_most.total_seconds(), self._give_up, line
            )
            self.watch.pause_began(line.type, error)

    def _give_up(self, line: Line) -> None:
        """A pause has lasted too long: what fails from now on dies of it, and can be republished."""
        line.end_of_pause = None
        line.health.give_up()
        self.watch.pause_ended(line.type, given_up=True)
        self.wake()

    def resume(self, line: Line) -> None:
        """No pause is to be given up any more."""
        if line.end_of_pause is not None:
            line.end_of_pause.cancel()
            line.end_of_pause = None

    def _tell(self, work: Work) -> None:
        work.began = None
        work.partition.untold.add(work)
        self._untold.append(work)
        self._news.set()

    async def _count(self, works: Sequence[Work]) -> None:
        """Count their failures, in one round trip, and decide what becomes of each."""
        live = [work for work in works if work.partition.is_live]
        failed = [(w.ticket.id, w.failures + 1, w.ticket.record.place) for w in live]
        counts = dict(zip(live, await self.counter.failed(failed) if failed else (), strict=True))
        for work in works:
            error, work.error = work.error, None
            work.partition.untold.discard(work)
            if work.partition.is_live and work.line is not None and error is not None:
                work.failures = counts[work]
                work.partition.offsets.failed(work.offset, work.failures)
                self._judge(work, work.line, error)
        self.commits.changed()

    def _judge(self, work: Work, line: Line, error: HandlerError) -> None:
        verdict = judge(
            error.outcome,
            provider="ticket",
            charged_before=work.failures - 1,
            in_doubt_before=0,
            delivery=Delivery.AT_LEAST_ONCE,
            policy=line.policy,
            expires_in=_FOR_EVER,
            chance=self._chance(),
        )
        match verdict:
            case Retry(after):
                self.watch.failed(work, error, after)
                self._wait(work, after)
            case Dead():
                self.watch.failed(work, error, None)
                self.dead_lettering.start(work, death_of(work, error, now_ms=now_ms()))
            case _:
                raise AssertionError(f"a failure cannot end as {verdict}")

    def _wait(self, work: Work, after: timedelta) -> None:
        if isinstance(work.ticket, Ticket):
            work.ticket.put_away()
        work.partition.waiting.add(work)
        loop = asyncio.get_running_loop()
        work.timer = loop.call_later(after.total_seconds(), self.wait_over, work)

    def wait_over(self, work: Work) -> None:
        """It may run again."""
        if work.timer is not None:
            work.timer.cancel()
        work.timer = None
        work.partition.waiting.discard(work)
        self.lanes.ready(work)
        self.wake()


def now_ms() -> int:
    """Return the time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000

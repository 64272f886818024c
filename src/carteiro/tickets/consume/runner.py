"""One worker of the lane: it takes tickets in, has their handlers run, and sees each one to its end.

A ticket ends when its handler has returned, or when the broker has its dead letter; then, and not before,
the log may forget it. If we are killed at any line, the next owner of the partition reads it again.
"""

import asyncio
import time
from collections.abc import Collection, Sequence
from datetime import timedelta
from itertools import groupby
from operator import attrgetter, ge, itemgetter

from carteiro.config import TicketSettings
from carteiro.errors import CarteiroError
from carteiro.tickets import events
from carteiro.tickets.consume import failures as failing
from carteiro.tickets.consume.commits import MOST_UNNOTED, Committer, commits_of
from carteiro.tickets.consume.dead_lettering import DeadLettering
from carteiro.tickets.consume.handlers import Tickets
from carteiro.tickets.consume.lanes import Lanes, Line, Partition, Work, works_of
from carteiro.tickets.consume.offsets import Offsets
from carteiro.tickets.consume.pool import HandlerPool
from carteiro.tickets.consume.ports import Commit, DeadLetterTopic, FailureCounter, Given, TicketLog
from carteiro.tickets.consume.settling import Settling, now_ms
from carteiro.tickets.consume.watch import Watch
from carteiro.tickets.deaths import Trouble
from carteiro.tickets.ticket import Part, Record, read_all

_OVERSHOOT = 3_000  # records that may be on their way when a partition is paused
_READ_AHEAD = MOST_UNNOTED + _OVERSHOOT  # of what its last commit says
# For handlers that were cancelled, to clean up before another runs them.
_FAREWELL = timedelta(seconds=1)
_CLEANING_UP = timedelta(seconds=5)  # for the same, when the process is to end
_FAREWELLS = 3


class HandlersGoOn(CarteiroError):
    """There are handlers that cannot be stopped; only the end of the process does."""


class Runner:
    """Runs handlers for the tickets of a log, ``settings.concurrency`` at a time."""

    def __init__(  # noqa: PLR0913 - the parts that a worker is made of
        self,
        settings: TicketSettings,
        tickets: Tickets,
        *,
        log: TicketLog,
        counter: FailureCounter,
        topic: DeadLetterTopic,
        watch: Watch,
    ) -> None:
        self._log = log
        self.stop = log.stop
        self._counter = counter
        self._grace = settings.drain
        self._window = settings.window
        self._is_urgent = asyncio.Event()
        self._partitions: dict[Part, Partition] = {}
        # The last list that something is asked of.
        self._taking_in: asyncio.Task[None] | None = None
        self._commits = Committer(settings, log, self._partitions, hurry=self._hurry)
        self._dead_lettering = DeadLettering(
            settings, counter, topic, watch, ended=self._buried, changed=self._commits.changed
        )
        self._lanes = Lanes([Line(each, settings) for each in tickets], self._dead_lettering.start)
        self._settling = Settling(
            *(settings, counter, self._lanes, self._commits, self._dead_lettering, watch),
            wake=self._wake,
        )
        self._pool = HandlerPool(
            self._lanes,
            settings.concurrency,
            settle=self._settling.settle,
            look_around=self._commits.look_around,
        )

    def _hurry(self, work: Work) -> None:
        self._settling.wait_over(work)

    def _wake(self) -> None:
        self._pool.wake()

    # --- its life ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until `stop`; what is in flight then may end, and what has ended is committed."""
        loops = (self._commits.run(), self._settling.run())
        helpers = [*self._pool.start(), *map(asyncio.create_task, loops)]
        log = asyncio.create_task(self._log.run(self))
        try:
            await asyncio.wait([log, *helpers], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._log.stop()
            await asyncio.wait([log])
            last = [self._taking_in or log]
            await asyncio.wait(last)
            for line in self.lines:
                self._settling.resume(line)
            gone = [each for each in helpers if each.done()]
            deaf = await self._dismissed(helpers)
        for each in {log, *last, *helpers} - deaf:
            if not each.cancelled():
                each.result()
            elif each in gone:
                raise CarteiroError(
                    "A part of the worker was cancelled, and nobody here asked for it"
                )
        if deaf:
            raise HandlersGoOn(
                f"{len(deaf)} handlers go on though they were cancelled {_FAREWELLS} times: "
                "they must let asyncio.CancelledError pass"
            )

    async def _dismissed(
        self, helpers: Sequence["asyncio.Task[None]"]
    ) -> set["asyncio.Task[None]"]:
        """Have them end, those with a handler in flight a while later; those that go on all the same."""
        left = set(helpers)
        for each in self._pool.dismissed(helpers):
            each.cancel()
        patience = timedelta(0) if self._is_urgent.is_set() else _CLEANING_UP
        _, left = await asyncio.wait(left, timeout=patience.total_seconds())
        for _ in range(_FAREWELLS):
            if not left:
                break
            for each in left:
                each.cancel()
            _, left = await asyncio.wait(left, timeout=_FAREWELL.total_seconds())
        return left

    def stop_now(self) -> None:
        """Do not wait for what is in flight, either: it is read again."""
        self._is_urgent.set()
        self._pool.settle_returned()
        for partition in self._partitions.values():
            self._abandon(partition)
        self._log.stop()

    @property
    def held_keys(self) -> int:
        """The number of keys that wait: for another try, for their dead letter to be taken, or for people."""
        paused = sum(len(line.ready) for line in self.lines if line.health.breaker.is_open)
        return paused + sum(each.held_keys for each in self._partitions.values())

    @property
    def held(self) -> list[Trouble]:
        """Dead tickets that have nowhere to go, each with all of its key."""
        return [each for partition in self._partitions.values() for each in partition.held]

    @property
    def lag(self) -> int:
        """The number of records of its partitions that are not done, as far as is known."""
        ends = self._log.ends([*self._partitions])
        return sum(max(0, end - _begin(self._partitions[part], end)) for part, end in ends.items())

    @property
    def lines(self) -> Sequence[Line]:
        """The types, with what each has done."""
        return [*self._lanes.lines.values()]

    # --- what the log tells -----------------------------------------------------------------------

    async def assigned(self, given: Sequence[Given]) -> None:
        """Begin where the last owner ended; the counter says how far it need be asked."""
        counted = await self._counter.counted_up_to([each.part for each in given])
        for place, each in enumerate(given):
            partition = Partition(each.part, Offsets(each.noted), each.committed)
            known = self._known_until(each)
            bounds = [] if known is None else [known + _READ_AHEAD]
            bounds += [] if counted is None else [counted[place]]
            partition.unsure_until = min(bounds, default=None)
            partition.is_sure = partition.unsure_until == 0
            self._partitions[each.part] = partition
        events.partitions_assigned([each.part for each in given])

    def _known_until(self, given: Given) -> int | None:
        """Return how far its last owner had come when it committed; notes that did not fit say less than that."""
        if given.noted is None:
            return given.committed
        return max(given.noted.end, given.noted.start + self._window + _OVERSHOOT)

    async def revoked(self, parts: Sequence[Part]) -> Sequence[Commit]:
        """Start nothing more of these, wait a while for what is in flight, and say how far they are."""
        leaving = [self._partitions[part] for part in parts if part in self._partitions]
        for each in leaving:
            each.is_open = False
        await self._drained(leaving, self._grace)
        commits = [*commits_of(leaving).values()]
        for each in leaving:
            self._forget(each)
        await self._drained(leaving, _FAREWELL)
        events.partitions_revoked(parts)
        return commits

    async def lost(self, parts: Sequence[Part]) -> None:
        """Another has them: nothing that is in flight may leave a trace."""
        for part in parts:
            if part in self._partitions:
                self._forget(self._partitions[part])
        events.partitions_lost(parts)

    async def arrived(self, records: Sequence[Record]) -> None:
        """Take them in; those that another may have had before cost one question for all of them.

        While it is asked the next ones may come, but not those after them.
        """
        works: list[Work] = []
        for _, some in groupby(records, key=itemgetter(1)):
            works += self._works([*some])
        partitions, before = {work.partition for work in works}, self._taking_in
        for partition in partitions:
            self._commits.bound(partition)
        taking_in = self._take_in(works, partitions, before)
        if all(each.is_sure for each in partitions):
            await taking_in
        else:
            self._taking_in = asyncio.create_task(taking_in)
            self._taking_in.add_done_callback(self._stop_if_failed)
            if before is not None:
                await before

    # --- taking in --------------------------------------------------------------------------------

    async def _take_in(
        self,
        works: Sequence[Work],
        partitions: Collection[Partition],
        before: "asyncio.Task[None] | None",
    ) -> None:
        """Let them run, after those that came before."""
        is_sure = all(each.is_sure for each in partitions)
        if not is_sure and (ended := await self._ended_before(works)):
            self._settling.leave([work for work in works if work in ended])
            works = [work for work in works if work not in ended]
        # Those that must not be run, or not as if they were new.
        if odd := [work for work in works if work.line is None or work.failures]:
            await self._foresee_deaths(odd)
        if before is not None:
            await before
        if not all(each.is_live for each in partitions):
            works = [work for work in works if work.partition.is_live]
        self._lanes.put(works)
        self._pool.wake()

    def _stop_if_failed(self, taken_in: "asyncio.Task[None]") -> None:
        if taken_in.cancelled() or taken_in.exception() is not None:
            self._log.stop()  # `run` raises it

    def _works(self, records: Sequence[Record]) -> list[Work]:
        """The work of records of one partition, without those that had ended when it was committed."""
        partition = self._partitions.get(records[0][:2])
        if partition is None:
            return []
        offsets = [record.offset for record in records]
        last = -1 if partition.offsets.end is None else partition.offsets.end - 1
        if any(map(ge, [last, *offsets], offsets)):
            if len(records) > 1:
                return [work for record in records for work in self._works([record])]
            partition = self._begin_again(partition)
        needed = partition.offsets.take(offsets)
        if len(needed) < len(records):
            self._commits.changed()
            records = [record for record in records if record.offset in needed]
        works = works_of(read_all(records), partition, self._lanes.lines)
        for work, failures in (
            zip(works, needed.values(), strict=True) if any(needed.values()) else ()
        ):
            work.failures = failures
        partition.bytes += sum([work.size for work in works])
        return works

    def _begin_again(self, partition: Partition) -> Partition:
        """Offsets went back: the topic was made anew, or lost its end. What was known is of records that are gone."""
        events.partition_began_again([partition.part])
        self._abandon(partition)
        new = self._partitions[partition.part] = Partition(partition.part, Offsets())
        return new

    async def _ended_before(self, works: Sequence[Work]) -> set[Work]:
        """Those that had ended before that could be committed; of the others it is noted how often they failed."""
        unsure = [
            work
            for partition, some in groupby(works, key=attrgetter("partition"))
            for work in _unsure(partition, [*some])
        ]
        if not unsure:
            return set()
        standings = await self._counter.look([each.ticket.id for each in unsure])
        ended = set()
        for work, standing in zip(unsure, standings, strict=True):
            if standing.ended_at and standing.ended_at == work.ticket.record.place:
                ended.add(work)
            elif standing.failures > work.failures:
                work.failures = standing.failures
        return {work for work in ended if work.partition.is_live}

    async def _foresee_deaths(self, works: Sequence[Work]) -> None:
        """Those that must not be run: no ticket, no handler, or used up. Of the last it is asked what they died of."""
        for work in works:
            work.death = failing.death_at_once(work, now_ms=now_ms())
        used_up = [work for work in works if work.death is not None and work.line is not None]
        if used_up:
            known = await self._counter.kept_errors([work.ticket.id for work in used_up])
            for work, last in zip(used_up, known, strict=True):
                work.death = work.death if last is None else failing.death_known(work, last)

    def _buried(self, works: Sequence[Work]) -> None:
        self._settling.ended(works)
        self._commits.look_around()
        self._pool.wake()

    # --- giving partitions away -------------------------------------------------------------------

    async def _drained(self, partitions: Sequence[Partition], patience: timedelta) -> None:
        """Wait until nothing of them is in flight, the patience is over, or it is urgent."""
        waits = [
            asyncio.ensure_future(each)
            for each in (self._is_put_down(partitions, patience), self._is_urgent.wait())
        ]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()

    async def _is_put_down(self, partitions: Sequence[Partition], patience: timedelta) -> None:
        until = time.monotonic() + patience.total_seconds()
        for each in (self._pool, self._settling, self._dead_lettering):
            left = max(0.0, until - time.monotonic())
            await each.drained(partitions, timedelta(seconds=left))

    def _forget(self, partition: Partition) -> None:
        self._abandon(partition)
        self._partitions.pop(partition.part, None)

    def _abandon(self, partition: Partition) -> None:
        partition.is_live = partition.is_open = False
        for work in partition.waiting:
            if work.timer is not None:
                work.timer.cancel()
        self._pool.interrupt(partition)
        self._dead_lettering.interrupt(partition)


def _unsure(partition: Partition, works: Sequence[Work]) -> Sequence[Work]:
    """Those of a partition that another worker may have read before us, after its last commit."""
    if partition.unsure_until is None:
        partition.unsure_until = (partition.offsets.start or 0) + _READ_AHEAD
    until = partition.unsure_until
    partition.is_sure = works[0].offset >= until
    return [] if partition.is_sure else [w for w in works if w.offset < until]


def _begin(partition: Partition, end: int) -> int:
    """The first record of it that is not done, as far as is known."""
    lowest = partition.offsets.committable
    if lowest is not None:
        return lowest
    return end if partition.start is None else partition.start

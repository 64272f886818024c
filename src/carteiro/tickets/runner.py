"""One worker of the lane: it takes tickets in, runs their handlers, and sees each one to its end.

A ticket ends when its handler has returned, or when the broker has its dead letter; then, and not before,
the log may forget it. If we are killed at any line, whoever has the partition next reads it again.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from carteiro.config import TicketSettings
from carteiro.model import Dead, Deferred, Delivery, Outcome, Retry
from carteiro.path.judge import judge
from carteiro.policy.retry import PRESETS, RetryPolicy
from carteiro.tickets.dead_letter import Death
from carteiro.tickets.ends import OutOfTime, death_at_once, death_of, outcome_of
from carteiro.tickets.handlers import Function, Tickets
from carteiro.tickets.lanes import Lanes, Line, Partition, Work
from carteiro.tickets.offsets import Offsets
from carteiro.tickets.ports import (
    Commit,
    DeadLetterTopic,
    FailureCounter,
    Given,
    Part,
    Standing,
    TicketLog,
)
from carteiro.tickets.publisher import PublishFailed
from carteiro.tickets.ticket import Record, Ticket, read
from carteiro.tickets.watch import Watch

_FOR_EVER = timedelta.max
_BREATH = 50  # tickets that one hand may finish before others have a turn
_LONGEST_LATENESS_S = 0.1
_SHORTEST_COMMIT_PAUSE_S = 0.02
_FAREWELL = timedelta(
    seconds=1
)  # for handlers that were cancelled, to clean up before another runs them
_FIRST_PUBLISH_PAUSE_S, _LONGEST_PUBLISH_PAUSE_S = 0.5, 30.0


class Runner:
    """Runs handlers for the tickets of a log, ``settings.concurrency`` at a time."""

    def __init__(  # noqa: PLR0913 - the parts that a worker is made of
        self,
        settings: TicketSettings,
        tickets: Tickets,
        *,
        log: TicketLog,
        counter: FailureCounter,
        graves: DeadLetterTopic,
        watch: Watch,
    ) -> None:
        self._settings = settings
        self._log = log
        self._counter = counter
        self._graves = graves
        self._watch = watch
        policy = _policy(settings)
        self._lanes = Lanes(
            (Line(each, time_limit=settings.time_limit, policy=policy) for each in tickets),
            self._start_burying,
        )
        self._partitions: dict[Part, Partition] = {}
        self._bytes = 0
        self._idle: list[asyncio.Future[None]] = []
        self._burials: set[asyncio.Task[None]] = set()
        self._committing = asyncio.Lock()
        self._one_put_down = asyncio.Event()
        self._something_ended = asyncio.Event()
        self._nothing_left = asyncio.Event()
        self._grace = settings.drain
        self._chance = random.Random().random  # noqa: S311 - jitter, not a secret

    # --- its life ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until `stop`; what is under way then may end, and what has ended is committed."""
        helpers = [asyncio.create_task(self._hand()) for _ in range(self._settings.concurrency)]
        helpers.append(asyncio.create_task(self._keep_committing()))
        helpers.append(asyncio.create_task(self._watch_the_clock()))
        log = asyncio.create_task(self._log.run(self))
        try:
            await asyncio.wait([log, *helpers], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._log.stop()
            await asyncio.wait([log])
            for each in (*helpers, *self._burials):
                each.cancel()
            await asyncio.gather(*helpers, *self._burials, return_exceptions=True)
        for each in (log, *helpers):
            if not each.cancelled():
                each.result()

    def stop(self) -> None:
        """Take nothing more."""
        self._log.stop()

    def stop_now(self) -> None:
        """Do not wait for what is under way, either: it is read again."""
        self._grace = timedelta(0)
        for partition in self._partitions.values():
            self._abandon(partition)
        self._log.stop()

    @property
    def held_keys(self) -> int:
        """How many keys wait: for another try, for their dead letter to be taken, or for people."""
        return sum(each.held_keys for each in self._partitions.values())

    @property
    def lag(self) -> int:
        """How many records its partitions have that are not done, as far as is known."""
        ends = self._log.ends([*self._partitions])
        done = {part: each.offsets.committable for part, each in self._partitions.items()}
        return sum(max(0, end - (done[part] or 0)) for part, end in ends.items())

    # --- what the log tells -----------------------------------------------------------------------

    async def assigned(self, given: Sequence[Given]) -> None:
        """Begin where the last owner ended."""
        for each in given:
            self._partitions[each.part] = Partition(each.part, Offsets(each.noted))
        self._watch.assigned([each.part for each in given])

    async def revoked(self, parts: Sequence[Part]) -> Sequence[Commit]:
        """Start nothing more of these, wait a while for what is under way, and say how far they are."""
        leaving = [self._partitions[part] for part in parts if part in self._partitions]
        for each in leaving:
            each.is_open = False
        await self._drained(leaving, self._grace)
        async with self._committing:  # one that is on its way must not come after the last one
            commits = [commit for each in leaving if (commit := _commit_of(each)) is not None]
            for each in leaving:
                self._forget(each)
        await self._drained(leaving, _FAREWELL)
        self._watch.unassigned(parts, lost=False)
        return commits

    async def lost(self, parts: Sequence[Part]) -> None:
        """Another has them: nothing that is under way may leave a trace."""
        for part in parts:
            if part in self._partitions:
                self._forget(self._partitions[part])
        self._watch.unassigned(parts, lost=True)

    async def arrived(self, records: Sequence[Record]) -> None:
        """Take them in: one question to the counter for all of them."""
        works = [work for each in records if (work := self._work(each)) is not None]
        standings = await self._counter.look([each.ticket.id for each in works])
        for work, standing in zip(works, standings, strict=True):
            if work.partition.is_live:
                self._take_in(work, standing)
        for partition in {id(each.partition): each.partition for each in works}.values():
            self._bound(partition)

    # --- taking in --------------------------------------------------------------------------------

    def _work(self, record: Record) -> Work | None:
        partition = self._partitions.get((record.topic, record.partition))
        if partition is None:
            return None
        failures = partition.offsets.take(record.offset)
        if failures is None:
            self._changed(partition)
            return None
        ticket = read(record)
        work = Work(ticket, partition, self._lanes.lines.get(ticket.type), failures)
        partition.bytes += work.size
        self._bytes += work.size
        return work

    def _take_in(self, work: Work, standing: Standing) -> None:
        if standing.buried_at and standing.buried_at == work.ticket.record.place:
            self._leave(work)  # the broker had its dead letter before we could commit
            self._changed(work.partition)
            return
        work.failures = max(work.failures, standing.failures)
        work.death = death_at_once(work, now_ms=_now_ms())
        self._lanes.put(work)
        self._wake()

    # --- working ----------------------------------------------------------------------------------

    async def _hand(self) -> None:
        """One of the hands: each takes the next piece of work, whichever it is."""
        me = asyncio.current_task()
        done = 0
        while True:
            now = time.monotonic()
            found = self._lanes.next(now)
            if found is None:
                await self._rest()
                continue
            work, line, ticket = found
            work.begin(me, now, line)
            await self._execute(work, line, ticket)
            done += 1
            if done % _BREATH == 0:
                await asyncio.sleep(0)

    async def _rest(self) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(woken)
        await woken

    def _wake(self) -> None:
        """One more hand may find something to do."""
        while self._idle:
            hand = self._idle.pop()
            if not hand.done():
                hand.set_result(None)
                return

    def _wake_all(self) -> None:
        for _ in range(len(self._idle)):
            self._wake()

    async def _execute(self, work: Work, line: Line, ticket: Ticket) -> None:
        ticket.attempt = work.failures + 1  # type: ignore[misc] # the handler has it from now on
        line.running += 1
        work.partition.running.add(work)
        try:
            error = await _error_of(work, line.function, ticket)
            if not work.partition.is_live:
                line.health.unused(time.monotonic())
            elif error is None:
                await self._succeeded(work, line)
            else:
                await self._failed(work, line, error)
        finally:
            line.running -= 1
            self._put_down(work)
            if line.ready:
                self._look_after(line)

    def _look_after(self, line: Line) -> None:
        """This hand takes what is next, whichever line it is of: another may have to take what is left here."""
        if line.health.is_out:
            self._later(line.health.wait(time.monotonic()), self._wake)
        elif line.is_limited:
            self._wake()

    async def _watch_the_clock(self) -> None:
        """Cancel what takes too long. One look at all of them now and then is cheaper than a timer for each."""
        limits = [line.time_limit for line in self._lanes.lines.values()]
        pause = min(_LONGEST_LATENESS_S, *limits)
        while True:
            await asyncio.sleep(pause)
            now = time.monotonic()
            for partition in self._partitions.values():
                for work in partition.running:
                    if work.late_at <= now:
                        work.interrupt()

    async def _succeeded(self, work: Work, line: Line) -> None:
        if line.health.succeeded(work.began, time.monotonic()):
            self._watch.outage_ended(line.type)
            self._wake_all()
        if work.failures:
            await self._counter.succeeded([work.ticket.id])
        self._watch.done(work)
        self._end(work)

    async def _failed(self, work: Work, line: Line, error: BaseException) -> None:
        outcome = outcome_of(error)
        if self._is_outage(work, line, outcome):
            self._lanes.ready(
                work
            )  # behind the others; it is not charged, and waits for the outage to end
            return
        failures = await self._counter.failed(work.ticket.id, at_least=work.failures + 1)
        if not work.partition.is_live:
            return
        work.failures = failures
        work.partition.offsets.failed(work.offset, failures)
        self._changed(work.partition)
        self._judge(work, line, outcome, error)

    def _is_outage(self, work: Work, line: Line, outcome: Outcome) -> bool:
        """Whether it failed with all the others; a failure for good says nothing about others."""
        now = time.monotonic()
        if not isinstance(outcome, Deferred):
            line.health.unused(now)
            return False
        if line.health.failed(work.began, now, self._chance(), id=work.ticket.id):
            self._watch.outage_began(line.type)
        return line.health.is_out

    def _judge(self, work: Work, line: Line, outcome: Outcome, error: BaseException) -> None:
        verdict = judge(
            outcome,
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
                self._watch.failed(work, error, after)
                self._wait(work, after)
            case Dead():
                self._watch.failed(work, error, None)
                self._start_burying(work, death_of(work, error, now_ms=_now_ms()))
            case _:
                raise AssertionError(f"a failure cannot end as {verdict}")

    def _wait(self, work: Work, after: timedelta) -> None:
        work.partition.waiting.add(work)
        work.timer = self._later(after.total_seconds(), self._wait_over, work)

    def _wait_over(self, work: Work) -> None:
        if work.timer is not None:
            work.timer.cancel()
        work.timer = None
        work.partition.waiting.discard(work)
        self._lanes.ready(work)
        self._wake()

    def _later(
        self, wait: float, call: Callable[..., None], *arguments: object
    ) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(wait, call, *arguments)

    # --- dead letters -----------------------------------------------------------------------------

    def _start_burying(self, work: Work, death: Death) -> None:
        work.death = death
        if not work.partition.is_open:
            return
        work.partition.running.add(work)
        task = asyncio.get_running_loop().create_task(self._bury(work, death))
        work.buried_by(task)
        self._burials.add(task)
        task.add_done_callback(self._burials.discard)

    async def _bury(self, work: Work, death: Death) -> None:
        """Have the broker keep its dead letter, however long that takes; the handler is not run again."""
        try:
            if not self._settings.dlq_enabled:
                self._watch.held(death)
                work.partition.held += 1  # its key stays where it is, until somebody decides
                return
            await self._publish(work, death)
            if not work.partition.is_live:
                return
            await self._counter.buried(work.ticket.id, work.ticket.record.place)
            if work.partition.is_live:
                self._watch.buried(death)
                self._end(work)
                self._wake()
        finally:
            self._put_down(work)

    async def _publish(self, work: Work, death: Death) -> None:
        pause = _FIRST_PUBLISH_PAUSE_S
        while work.partition.is_live:
            try:
                await self._graves.publish(death)
            except PublishFailed as error:
                self._watch.publish_failed(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PUBLISH_PAUSE_S)
            else:
                return

    # --- ending, and committing -------------------------------------------------------------------

    def _end(self, work: Work) -> None:
        self._leave(work)
        self._lanes.ended(work)
        self._changed(work.partition)

    def _leave(self, work: Work) -> None:
        work.partition.offsets.finish(work.offset)
        work.partition.bytes -= work.size
        self._bytes -= work.size

    def _changed(self, partition: Partition) -> None:
        self._something_ended.set()
        if partition.offsets.is_idle:
            self._nothing_left.set()
        if partition.is_paused:
            self._bound(partition)

    def _bound(self, partition: Partition) -> None:
        """Pause a partition that has come too far ahead of its oldest ticket; resume it at half of that."""
        settings, offsets = self._settings, partition.offsets
        parts = 2 if partition.is_paused else 1
        is_far = (
            offsets.span * parts >= settings.window
            or self._bytes * parts >= settings.window_bytes
            or offsets.is_noted_full
        )
        if is_far and partition.is_open:
            if not partition.is_paused:
                partition.is_paused = True
                self._log.pause([partition.part])
            self._hurry(partition)
        elif partition.is_paused:
            partition.is_paused = False
            self._log.resume([partition.part])

    def _hurry(self, partition: Partition) -> None:
        """A few that fail hold up a whole partition: they need not wait, so that they end one way or the other."""
        if partition.offsets.is_mostly_done:
            for work in list(partition.waiting):
                self._wait_over(work)

    async def _keep_committing(self) -> None:
        while True:
            await self._something_ended.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.commit_every.total_seconds()):
                    await self._nothing_left.wait()
            self._something_ended.clear()
            self._nothing_left.clear()
            await self._commit()
            await asyncio.sleep(_SHORTEST_COMMIT_PAUSE_S)

    async def _commit(self) -> None:
        async with self._committing:
            partitions = [each for each in self._partitions.values() if each.is_open]
            commits = [commit for each in partitions if (commit := _commit_of(each)) is not None]
            if not commits:
                return
            if await self._log.commit(commits):
                for commit in commits:
                    if (partition := self._partitions.get(commit.part)) is not None:
                        partition.committed = (commit.offset, commit.notes)
            else:
                self._something_ended.set()
        for partition in partitions:
            if partition.is_paused:
                self._bound(partition)

    # --- giving partitions away -------------------------------------------------------------------

    async def _drained(self, partitions: Sequence[Partition], patience: timedelta) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(patience.total_seconds()):
                while any(partition.running for partition in partitions):
                    self._one_put_down.clear()
                    await self._one_put_down.wait()

    def _put_down(self, work: Work) -> None:
        work.partition.running.discard(work)
        self._one_put_down.set()

    def _forget(self, partition: Partition) -> None:
        self._abandon(partition)
        self._bytes -= partition.bytes
        del self._partitions[partition.part]

    def _abandon(self, partition: Partition) -> None:
        partition.is_live = partition.is_open = False
        for work in partition.waiting:
            if work.timer is not None:
                work.timer.cancel()
        for work in partition.running:
            work.interrupt()


async def _error_of(work: Work, function: Function, ticket: Ticket) -> BaseException | None:
    """Run the handler; what it raised, or None. Only a cancellation that is meant for the hand goes on."""
    error: BaseException | None = None
    try:
        await function(ticket)
    except (Exception, SystemExit, GeneratorExit, asyncio.CancelledError) as raised:  # noqa: BLE001 - it may fail in any way
        error = raised
    hand, work.task = work.task, None  # from here on it must not be interrupted
    if hand is not None and hand.cancelling():
        return _error_after_interruption(work, hand, error)
    return error


def _error_after_interruption(
    work: Work, hand: "asyncio.Task[None]", error: BaseException | None
) -> BaseException | None:
    """What the error means, if it is one that we asked for; raises if it is the hand itself that is to end."""
    for _ in range(work.interruptions):
        hand.uncancel()
    if hand.cancelling():
        raise asyncio.CancelledError
    if isinstance(error, asyncio.CancelledError):
        return OutOfTime(f"it took longer than {work.time_limit:g} s")
    return error


def _policy(settings: TicketSettings) -> RetryPolicy:
    return replace(PRESETS["tickets"], max_attempts=settings.max_retries_before_dlq)


def _commit_of(partition: Partition) -> Commit | None:
    """What is to be committed of it; None: nothing that was not committed before."""
    now = partition.offsets.commit()
    if now is None or now == partition.committed:
        return None
    return Commit(partition.part, *now)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

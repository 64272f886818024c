"""The slots of a worker: each runs one handler at a time, and takes the next ticket when it is done."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from datetime import timedelta
from typing import TypeAlias

from carteiro.tickets.consume.failures import OutOfTime
from carteiro.tickets.consume.lanes import Lanes, Line, Partition, Work

Settle: TypeAlias = Callable[[Work, Line, BaseException | None], Awaitable[None]]

_BREATH = 50  # tickets that one slot may finish before others have a turn
_LONGEST_LATENESS_S = 0.1
_AGAIN_S = (
    10.0  # until a handler that takes no notice is cancelled again; also its time to clean up
)


class _Slot:
    """One of them: what it holds, since when, and whether its handler may be interrupted."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.work: Work | None = None
        self.late_at = 0.0
        self.is_running = False
        self.interruptions = 0

    def interrupt(self, now: float) -> None:
        """Cancel its handler; if it goes on all the same, it is late again in a while."""
        if self.is_running and self.task is not None:
            self.late_at = now + _AGAIN_S
            self.interruptions += 1
            self.task.cancel()


class HandlerPool:
    """As many as may be in flight at once. ``settle`` is awaited after each handler, unless there is nothing to say.

    That is when a ticket that never failed is done at once by a type that never fails; then ``ended`` is
    called alone. ``look_around`` is called now and then, and whenever a slot has nothing to do.
    """

    def __init__(
        self,
        lanes: Lanes,
        many: int,
        *,
        settle: Settle,
        ended: Callable[[Work], None],
        look_around: Callable[[], None],
    ) -> None:
        self._lanes = lanes
        self._settle = settle
        self._ended = ended
        self._look_around = look_around
        self._slots = [_Slot() for _ in range(many)]
        self._idle: list[asyncio.Future[None]] = []
        # A slot has been called that has not come yet: it calls the next one itself.
        self._is_waking = False
        self._put_down = asyncio.Event()
        self._drains = 0  # how many wait for that
        self._is_over = False

    def start(self) -> list[asyncio.Task[None]]:
        """Begin to work; the tasks end only with an error, or when they are cancelled."""
        for slot in self._slots:
            slot.task = asyncio.create_task(self._work(slot))
        tasks = [slot.task for slot in self._slots if slot.task is not None]
        return [*tasks, asyncio.create_task(self._watch_the_clock())]

    def dismissed(
        self, tasks: Collection["asyncio.Task[None]"]
    ) -> Collection["asyncio.Task[None]"]:
        """Have no slot take more; all of these tasks but those of slots with a handler in flight."""
        self._is_over = True
        busy = {slot.task for slot in self._slots if slot.work is not None}
        return [each for each in tasks if each not in busy]

    def wake(self) -> None:
        """Another slot may find something to do; each that does calls the next one."""
        while self._idle and not self._is_waking:
            slot = self._idle.pop()
            if not slot.done():
                self._is_waking = True
                slot.set_result(None)

    def interrupt(self, partition: Partition) -> None:
        """Cancel what is in flight of a partition."""
        now = time.monotonic()
        for slot in self._holding([partition]):
            slot.interrupt(now)

    async def drained(self, partitions: Collection[Partition], patience: timedelta) -> None:
        """Wait until nothing of them is in flight, or the patience is over."""
        self._drains += 1
        try:
            async with asyncio.timeout(patience.total_seconds()):
                while self._holding(partitions):
                    self._put_down.clear()
                    await self._put_down.wait()
        except TimeoutError:
            return
        finally:
            self._drains -= 1

    def _holding(self, partitions: Collection[Partition]) -> list[_Slot]:
        return [
            slot
            for slot in self._slots
            if slot.work is not None and slot.work.partition in partitions
        ]

    async def _work(self, slot: _Slot) -> None:
        """Take the next piece of work, whichever it is, for ever."""
        taken = 0
        while not self._is_over:
            now = time.monotonic()
            found = self._lanes.next(now)
            if found is None:
                self._look_around()
                await self._rest()
                continue
            work, line = found
            if self._idle and not self._is_waking and self._lanes.are_ready:
                self.wake()  # this one may take long
            await self._handle(slot, work, line, now)
            if self._drains:
                self._put_down.set()
            taken += 1
            if taken % _BREATH == 0:
                self._look_around()
                await asyncio.sleep(0)

    async def _handle(self, slot: _Slot, work: Work, line: Line, now: float) -> None:
        """Have a ticket's handler run, and see to what comes of it."""
        work.began = 0 if line.health.is_perfect else line.health.breaker.begin(now)
        if work.failures:
            work.ticket.attempt = work.failures + 1  # type: ignore[misc,union-attr] # the handler has it from now on
        line.running += 1
        slot.late_at = now + line.time_limit
        slot.work = work
        slot.is_running = True
        error: BaseException | None = None
        try:
            try:
                await line.function(work.ticket)  # type: ignore[arg-type] # only tickets have a line
            except KeyboardInterrupt:
                raise
            except BaseException as raised:  # noqa: BLE001 - it may fail in any way: libraries panic with errors of their own
                error = raised
            slot.is_running = False  # from here on it must not be interrupted
            if error is not None or (slot.task is not None and slot.task.cancelling()):
                error = await self._without_interruptions(slot, error, line)
            if (
                error is None
                and line.health.is_perfect
                and not work.failures
                and not work.redrives
                and work.partition.is_live
            ):
                line.done_at_once += 1
                self._ended(work)
            else:
                await self._settle(work, line, error)
        finally:
            line.running -= 1
            slot.work = None

    async def _without_interruptions(
        self, slot: _Slot, error: BaseException | None, line: Line
    ) -> BaseException | None:
        """Translate a cancellation that we asked for into an error; raise it if this task itself is to end.

        A handler may have cancelled its own task, and left that so: it is the ticket's affair, not the slot's.
        """
        was_late, slot.interruptions = slot.interruptions > 0, 0
        if slot.task is not None and slot.task.cancelling():
            if self._is_over:
                raise asyncio.CancelledError
            while slot.task.uncancel():
                pass
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)  # one that was asked for and has not come yet comes here
        if was_late and isinstance(error, asyncio.CancelledError):
            return OutOfTime(f"it took longer than {line.time_limit:g} s")
        return error

    async def _rest(self) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(woken)
        await woken
        self._is_waking = False

    async def _watch_the_clock(self) -> None:
        """Cancel what takes too long. One look at all of them now and then is cheaper than a timer for each.

        While there is an outage nobody else calls a slot when the next trial may be made.
        """
        limits = [line.time_limit for line in self._lanes.lines.values()]
        pause = min(_LONGEST_LATENESS_S, *limits)
        while True:
            await asyncio.sleep(pause)
            now = time.monotonic()
            for slot in self._slots:
                if slot.is_running and slot.late_at <= now:
                    slot.interrupt(now)
            if self._lanes.are_ready:
                self.wake()

"""The slots of a worker: each runs one handler at a time, and takes the next ticket when it is done."""

import asyncio
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import timedelta
from typing import TypeAlias

from carteiro.tickets.consume.handler_error import OutOfTime, read_error
from carteiro.tickets.consume.lanes import Lanes, Line, Partition, Work

Settle: TypeAlias = Callable[[Line, list[Work]], None]

_BREATH_S = 0.002  # for which one slot may run handlers before others have a turn
_LONGEST_LATENESS_S = 0.1
# Until a handler that takes no notice is cancelled again; also its time to clean up.
_AGAIN_S = 10.0


class _Slot:
    """One of them: the ticket whose handler runs, and until when it may."""

    task: asyncio.Task[None]

    def __init__(self) -> None:
        self.work: Work | None = None  # None: nothing that may be interrupted
        self.late_at = 0.0
        self.interruptions = 0

    def interrupt(self, now: float) -> None:
        """Cancel its handler; if it goes on all the same, it is late again in a while."""
        self.late_at = now + _AGAIN_S
        self.interruptions += 1
        self.task.cancel()


class HandlerPool:
    """As many as may be in flight at once.

    Handlers that do not wait run one after the other, without a turn of the event loop between them. ``settle``
    hears of all that have returned together, in that order, at the next turn. ``look_around`` is called then, too.
    """

    def __init__(
        self, lanes: Lanes, many: int, *, settle: Settle, look_around: Callable[[], None]
    ) -> None:
        self._lanes = lanes
        self._settle = settle
        self._look_around = look_around
        self._slots = [_Slot() for _ in range(many)]
        self._idle: list[asyncio.Future[None]] = []
        # A slot has been called that has not come yet.
        self._is_waking = False
        self._turn, self._is_turn_due = 0, False
        self._put_down = asyncio.Event()
        self._is_over = False

    def start(self) -> list[asyncio.Task[None]]:
        """Begin to work; the tasks end only with an error, or when they are cancelled."""
        for slot in self._slots:
            slot.task = asyncio.create_task(self._work(slot))
        return [*(slot.task for slot in self._slots), asyncio.create_task(self._watch_the_clock())]

    def dismissed(
        self, tasks: Collection["asyncio.Task[None]"]
    ) -> Collection["asyncio.Task[None]"]:
        """Have no slot take more; all of these tasks but those of slots with a handler in flight."""
        self._is_over = True
        busy = {slot.task for slot in self._slots if slot.work is not None}
        return [each for each in tasks if each not in busy]

    def wake(self) -> None:
        """A slot may find something to do; the next one is called when that one waits."""
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
        """Wait until nothing of them is in flight, or the patience is over; what has returned is settled."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience.total_seconds()):
                while self._holding(partitions):
                    self._put_down.clear()
                    await self._put_down.wait()
        self.settle_returned()

    def _holding(self, partitions: Collection[Partition]) -> list[_Slot]:
        return [
            slot
            for slot in self._slots
            if slot.work is not None and slot.work.partition in partitions
        ]

    async def _work(self, slot: _Slot) -> None:
        """Take the next piece of work, whichever it is, for ever."""
        while not self._is_over:
            now = time.monotonic()
            found = self._lanes.next(now)
            if found is None and self.settle_returned():
                found = self._lanes.next(now)  # keys go on when a ticket of theirs is settled
            if found is None:
                self._look_around()
                await self._rest()
                continue
            try:
                has_waited = await self._has_waited(slot, *found, now)
            except GeneratorExit:  # of a thread that a handler awaited, or this task is closed
                if self._is_over:
                    raise
                continue
            if not has_waited:
                await self._rest()

    async def _has_waited(self, slot: _Slot, line: Line, work: Work | None, now: float) -> bool:
        """Run tickets of a type until a handler had to wait, there are no more, or others should have a turn."""
        self._turn_soon()  # it comes as soon as a handler waits
        turn, until = self._turn, now + _BREATH_S
        slot.late_at = until + line.time_limit
        ready, health, clock = line.ready, line.health, time.monotonic
        function, is_cancelled = line.function, slot.task.cancelling
        line.running += 1  # one after the other: they count as one
        try:
            while work is not None:
                slot.work = work
                try:
                    await function(work.ticket)  # type: ignore[arg-type] # only tickets have a line
                except KeyboardInterrupt:
                    raise
                except GeneratorExit as raised:
                    # Python closes all that await a thread which raised it.
                    work.error = read_error(raised)
                    line.returned.append(work)
                    self._turn_soon()
                    raise
                except BaseException as raised:  # noqa: BLE001 - it may fail in any way: libraries panic with errors of their own
                    work.error = read_error(raised)
                finally:
                    slot.work = None  # from here on it must not be interrupted
                if slot.interruptions or is_cancelled():
                    await self._without_interruptions(slot, work, line)
                line.returned.append(work)
                now = clock()
                if turn != self._turn or now >= until:
                    break
                if not ready:
                    self.settle_returned()
                # Most may start: asking the line costs as much as starting one.
                is_free = ready and not health.is_paused and ready[0].partition.is_open
                work = ready.popleft() if is_free else line.take(now)
        finally:
            line.running -= 1
        self._turn_soon()
        return turn != self._turn

    async def _without_interruptions(self, slot: _Slot, work: Work, line: Line) -> None:
        """Translate a cancellation that we asked for into an error; raise it if this task itself is to end.

        A handler may have cancelled its own task, and left that so: it is the ticket's affair, not the slot's.
        """
        was_late, slot.interruptions = slot.interruptions > 0, 0
        if slot.task.cancelling():
            if self._is_over:
                raise asyncio.CancelledError
            while slot.task.uncancel():
                pass
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)  # one that was asked for and has not come yet comes here
        if was_late and work.error is not None and "CancelledError" in work.error.names:
            work.error = read_error(OutOfTime(f"it took longer than {line.time_limit:g} s"))

    def _turn_soon(self) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        """The slot that ran last waits, or has had its turn: settle what has returned, and call the next."""
        self._is_turn_due = False
        self._turn += 1
        self.settle_returned()
        self._put_down.set()
        self._look_around()
        if self._lanes.are_ready:
            self.wake()

    def settle_returned(self) -> bool:
        """Settle what has returned, now; return True if there was any."""
        lines = [line for line in self._lanes.lines.values() if line.returned]
        for line in lines:
            self._settle(line, line.returned)
            line.returned = []  # not before: an error in settling must not lose them
        return bool(lines)

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
                if slot.work is not None and slot.late_at <= now:
                    slot.interrupt(now)
            if self._lanes.are_ready:
                self.wake()

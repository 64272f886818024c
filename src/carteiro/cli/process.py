"""One process: its event loop, its signals, and the parts that run in it together.

After the first SIGTERM or SIGINT no new job is claimed, and those in flight may finish. After the second,
jobs in flight are returned or left in doubt, as after a crash; nothing is lost.
"""

import asyncio
import ctypes
import gc
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import uvloop

from carteiro.config import Settings
from carteiro.model import value
from carteiro.observability import log

# Threads that come back from the disk wait this long for the interpreter's lock while the event loop
# is busy: with the default of 5 ms a commit would be answered that much later.
_SWITCH_INTERVAL_S = 0.0005
_STOPPING = (signal.SIGINT, signal.SIGTERM)
_GARBAGE_THRESHOLDS = (20_000, 20, 50)  # the garbage of a batch of jobs can wait
# Options of glibc's malloc, in bytes: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD. By default the memory of a list goes back to
# the system and comes again for the next one, and the system clears every page: a fifth of the client's time.
_KEPT_MEMORY = {-1: 16 * 1024 * 1024, -3: 4 * 1024 * 1024}


def run(main: Coroutine[object, object, None], *, settings: Settings) -> None:
    """Run it to its end, with a log of JSON lines."""
    tune()
    log.configure(settings.log.level)
    logging.basicConfig(handlers=[_FromLibraries(logging.ERROR)], force=True)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)
    _ignore_more_signals()


def leave_at_once() -> NoReturn:
    """End the process, even if threads still run in it."""
    log.flush()
    sys.stdout.flush()
    os._exit(1)


def tune() -> None:
    """Tune the interpreter for a process that only runs Carteiro."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()  # modules loaded by now stay: no collection needs to scan them
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    with suppress(AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        for option, size in _KEPT_MEMORY.items():
            mallopt(option, size)


class _FromLibraries(logging.Handler):
    """An error that a library logs becomes a line of ours; its text may quote anything, and is left out."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            log.unexpected(record.name, error)


class Stop:
    """Requests to stop the process: the first is gentle, the second is immediate."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.insisted = asyncio.Event()

    def tell(self) -> None:
        """Ask for a stop; the second time, stop now."""
        (self.insisted if self.asked.is_set() else self.asked).set()


def stop_on_signals() -> Stop:
    """Handle signals from here on: they ask for a stop.

    The loop's own handlers do not serve: closing the loop removes them, and a second signal shortly
    after, when all is stored, would kill the process.
    """
    stop = Stop()
    loop = asyncio.get_running_loop()

    def tell(_number: int, _frame: FrameType | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: nothing is left to stop
            loop.call_soon_threadsafe(stop.tell)

    for each in _STOPPING:
        signal.signal(each, tell)
    return stop


def _ignore_more_signals() -> None:
    """Ignore signals while the interpreter exits: it removes our handlers before it ends."""
    for each in _STOPPING:
        if (
            callable(handler := signal.getsignal(each))
            and handler is not signal.default_int_handler
        ):
            signal.signal(each, signal.SIG_IGN)


@value
class Part:
    """A part of the process that runs until it is stopped: gently, or at once."""

    run: Callable[[], Coroutine[object, object, None]]
    stop: Callable[[], None]
    stop_now: Callable[[], None]


async def run_together(parts: Sequence[Part], stop: Stop) -> None:
    """Run all until a signal comes or one of them ends; then stop all, and raise any error."""
    # In this order: a part has started, and can be stopped, before a signal is handled.
    running = [asyncio.create_task(part.run()) for part in parts]
    await _first_of(*running, stop.asked.wait())
    for part in parts:
        part.stop()
    ended = asyncio.ensure_future(asyncio.wait(running))
    await _first_of(ended, stop.insisted.wait())
    if not ended.done():
        for part in parts:
            part.stop_now()
    await ended
    for task in running:
        task.result()


async def _first_of(*waits: Awaitable[object]) -> None:
    """Return when one of them has ended; cancel only the tasks of this call."""
    futures = [asyncio.ensure_future(wait) for wait in waits]
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    for future, wait in zip(futures, waits, strict=True):
        if future is not wait:
            future.cancel()

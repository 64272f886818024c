"""Rules for all tests."""

import asyncio
import faulthandler
import gc
import math
import os
import signal
import tempfile
import time
from collections.abc import Generator, Iterator
from types import FrameType

import pytest
from hypothesis import settings

from support.services import memory

_LONGEST_TEST_S = 180
_LONGEST_CLEAN_UP_S = 60
_LONGEST_END_S = 900  # the process that started a shared server waits for all others
_STDERR = os.dup(2)  # before output is captured

# The duration of an example depends on the machine and its load.
settings.register_profile("carteiro", deadline=None)
settings.load_profile("carteiro")


# Folders of tests are in memory: a file on a busy disk makes every fsync a long one.
if (place := memory()) is not None and "TMPDIR" not in os.environ:
    os.environ["TMPDIR"] = tempfile.tempdir = str(place)


class _Guard:
    """Ends the process, with all stacks, at a limit, whatever it does.

    A limit is a thread. To start one and wait for its end takes longer than most tests: it is set from time to time.
    """

    _SET_AGAIN_AFTER_S = 10

    def __init__(self) -> None:
        self._set_at = -math.inf

    def watch(self, item: pytest.Item) -> None:
        """A test begins."""
        now, own = time.monotonic(), item.get_closest_marker("timeout")
        if own is not None:
            self.end_in(own.args[0] + _LONGEST_CLEAN_UP_S)
        elif now - self._set_at > self._SET_AGAIN_AFTER_S:
            self.end_in(_LONGEST_TEST_S + self._SET_AGAIN_AFTER_S)
            self._set_at = now

    def end_in(self, seconds: float) -> None:
        """Set this limit, in place of any other."""
        faulthandler.dump_traceback_later(seconds, exit=True, file=_STDERR)
        self._set_at = -math.inf


_guard = _Guard()


def pytest_collection_finish() -> None:
    """Ten thousand tests stay in memory until the end: the garbage collector need not visit them each time.

    At the default thresholds it takes a fifth of all processor time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer() -> Iterator[None]:
    """At the time limit, show and cancel the tasks of the running loop, too.

    uvloop loses the error that the limit raises in a signal handler, and no stack of a thread shows a waiting task.
    """
    is_set = yield
    fail = signal.getsignal(signal.SIGALRM)

    def end(number: int, frame: FrameType | None) -> None:
        loop = asyncio._get_running_loop()
        for task in asyncio.all_tasks(loop) if loop else ():
            task.print_stack()
            task.cancel()
        if callable(fail):
            fail(number, frame)

    if callable(fail):
        signal.signal(signal.SIGALRM, end)
    return is_set


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End the process, with all stacks, if even its time limit cannot end a test: it ignores cancellations."""
    _guard.watch(item)
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """As well if what a failed test left cannot be cleaned up: its time limit ends with the failure."""
    if isinstance(node, pytest.Item):
        _guard.end_in(_LONGEST_CLEAN_UP_S)


def pytest_unconfigure() -> None:
    """Bound the end of the process, too: threads that failed tests left, and shared servers."""
    _guard.end_in(_LONGEST_END_S)

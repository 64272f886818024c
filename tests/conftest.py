"""Rules for all tests."""

import asyncio
import faulthandler
import gc
import os
import signal
from collections.abc import Iterator
from types import FrameType

import pytest
from hypothesis import settings

_LONGEST_CLEAN_UP_S = 60
_LONGEST_END_S = 900  # the process that started a shared server waits for all others
_STDERR = os.dup(2)  # before output is captured

# The duration of an example depends on the machine and its load.
settings.register_profile("carteiro", deadline=None)
settings.load_profile("carteiro")


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
def pytest_runtest_teardown() -> Iterator[None]:
    """End the process, with all stacks, if what a failed test left cannot be cleaned up.

    The time limits of `pyproject.toml` end with the failure.
    """
    faulthandler.dump_traceback_later(_LONGEST_CLEAN_UP_S, exit=True, file=_STDERR)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_unconfigure() -> None:
    """Bound the end of the process, too: threads that failed tests left, and shared servers."""
    faulthandler.dump_traceback_later(_LONGEST_END_S, exit=True, file=_STDERR)

"""Rules for all tests."""

import faulthandler
import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

_LONGEST_CLEAN_UP_S = 60
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
def pytest_runtest_teardown() -> Iterator[None]:
    """End the process, with all stacks, if what a failed test left cannot be cleaned up.

    The time limits of `pyproject.toml` end with the failure.
    """
    faulthandler.dump_traceback_later(_LONGEST_CLEAN_UP_S, exit=True, file=_STDERR)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()

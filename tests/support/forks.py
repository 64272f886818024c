"""Processes of ours, forked from one that has all their imports: a new one takes a second or more for them."""

import os
import sys
from collections.abc import Mapping
from functools import cache
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from multiprocessing.forkserver import ensure_running

import pytest

# A process of the tests has one server that forks, so it needs the imports of all.
_PRELOADED = [
    "end_to_end.crash.child",
    "end_to_end.crash.redis_points",
    "end_to_end.tickets.process",
]


@cache
def forks() -> ForkServerContext:
    """Starts processes; the first start waits for the imports."""
    context = get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    with pytest.MonkeyPatch.context() as environment:  # it finds modules by this alone
        environment.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        ensure_running()
    return context


def become(environment: Mapping[str, str], *, log: str, out: int | None = None) -> None:
    """Take this environment; append the log to this file, and write output to this descriptor, or to the log, too."""
    os.environ.clear()
    os.environ.update(environment)
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(descriptor if out is None else out, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)

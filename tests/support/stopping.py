"""A stopped process: it holds its connections and sends nothing."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stop a child of ours with all its threads, and continue it at the end."""
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED)  # its threads go on for a moment after the signal
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)

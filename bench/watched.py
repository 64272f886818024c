"""End a measure with an error when what it waits for cannot come: nothing has moved for a long while."""

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_S = 120.0  # without any progress; a slow machine moves, if slowly
_LAST_WORDS_S = 30.0  # to end in good order
_EXIT_STALLED = 70


class Stalled(Exception):
    """An expected result does not come."""


@contextmanager
def watched(
    what: str, progress: Callable[[], object], *, patience_s: float = PATIENCE_S
) -> Iterator[None]:
    """Raise `Stalled` in the main thread when ``progress()`` has not changed for that time; print where it hangs."""
    over, stalled = threading.Event(), threading.Event()
    watching = threading.Thread(
        target=_watch, args=(what, progress, patience_s, over, stalled), daemon=True
    )
    watching.start()
    try:
        yield
    except BaseException as error:
        if stalled.is_set():
            raise Stalled(what) from error
        raise
    finally:
        over.set()


def _watch(
    what: str,
    progress: Callable[[], object],
    patience_s: float,
    over: threading.Event,
    stalled: threading.Event,
) -> None:
    seen, since = progress(), time.monotonic()
    while not over.wait(patience_s / 20):
        now = progress()
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since >= patience_s:
            break
    else:
        return
    print(f"{what}: nothing has moved for {patience_s:g} s, at {seen!r}", file=sys.stderr)
    faulthandler.dump_traceback(sys.stderr)
    stalled.set()
    # As Ctrl-C: event loops and calls that block end by it, and what was started is stopped.
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    if not over.wait(_LAST_WORDS_S):
        os._exit(_EXIT_STALLED)

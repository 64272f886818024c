"""One server for all processes of a test run: the first to need it starts it, and leaves last."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from support.services import Service, is_listening


@contextmanager
def shared_port(name: str, opens: Callable[[], AbstractContextManager[Service]]) -> Iterator[int]:
    """The port of a server that this run shares; in a run of one process, of its own server."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    with ExitStack() as stack:
        if run is None:
            yield stack.enter_context(opens()).port
        else:
            place = Path(tempfile.gettempdir()) / f"carteiro-{name}-{run}"
            yield stack.enter_context(_shared_by_way_of(place, opens))


@contextmanager
def _shared_by_way_of(
    place: Path, opens: Callable[[], AbstractContextManager[Service]]
) -> Iterator[int]:
    place.mkdir(exist_ok=True)
    with (place / "users").open("w") as users, ExitStack() as ours:
        with (place / "start").open("w") as start:
            fcntl.flock(start, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_SH)  # each holds it until it ends
            if not _is_known(place / "port"):
                server = ours.enter_context(opens())
                (place / "port").write_text(str(server.port), "utf-8")
                ours.callback(_leave_last, users, place)
        yield int((place / "port").read_text("utf-8"))


def _is_known(port: Path) -> bool:
    return port.exists() and is_listening(int(port.read_text("utf-8")))


def _leave_last(users: TextIO, place: Path) -> None:
    fcntl.flock(users, fcntl.LOCK_EX)
    shutil.rmtree(place)

"""SES as a separate process: our twin, and moto's, which is independent of us."""

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from support import ses_twin
from support.services import HOST, Service

_Any = TypeVar("_Any", bound=Service)


_TAKEN = "taken.jsonl"


def taken_by_ses(folder: Path) -> list[tuple[str, int]]:
    """The messages accepted by a twin with this folder, each with its time (milliseconds)."""
    file = folder / _TAKEN
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    taken = [json.loads(line) for line in lines]
    return [(each["tags"]["carteiro-message"], each["at"]) for each in taken]


class _HttpService(Service):
    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{HOST}:{self.port}"

    def is_ready(self) -> bool:
        """True if it takes connections."""
        try:
            socket.create_connection((HOST, self.port), 1).close()
        except OSError:
            return False
        return True


class TwinProcess(_HttpService):
    """The twin; `taken_by_ses` has its accepted messages."""

    def command(self) -> list[str]:
        """The twin in the foreground."""
        options = ["--port", str(self.port), "--file", str(self.folder / _TAKEN)]
        return [sys.executable, ses_twin.__file__, *options]


class MotoServer(_HttpService):
    """moto in the foreground."""

    def command(self) -> list[str]:
        """As its own command runs it."""
        return [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(self.port)]


@contextmanager
def a_twin_process(folder: Path) -> Iterator[TwinProcess]:
    """The twin, running until the block ends; ``folder`` is made for it."""
    with _running(TwinProcess(_made(folder))) as twin:
        yield twin


@contextmanager
def a_moto_server(folder: Path) -> Iterator[MotoServer]:
    """moto, running until the block ends; ``folder`` is made for it."""
    with _running(MotoServer(_made(folder))) as moto:
        yield moto


def _made(folder: Path) -> Path:
    folder.mkdir()
    ses_twin.secret_file(folder).write_text(ses_twin.SECRET, "utf-8")
    return folder


@contextmanager
def _running(server: _Any) -> Iterator[_Any]:
    server.start()
    try:
        yield server
    finally:
        server.stop()

"""Common parts of the test servers: a free loopback port, a folder, no rights, and a certain end."""

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import pytest

HOST = "127.0.0.1"
PATIENCE = 30.0  # seconds; a server that was killed reads its log first

_MADE = Path(__file__).parents[2] / ".services"
_WITHOUT_SERVERS = bool(
    os.environ.get("WITHOUT_SERVERS")
)  # make check, which runs no test that is marked
_NOBODY = "nobody"  # PostgreSQL and PgBouncer refuse to be root
_MEMORY = Path("/dev/shm")
_ROOM = 1 << 30  # bytes that must be free in memory before anything is kept there
_PORTS = range(20_000, 32_768)  # below those that the system gives to clients

# Reads from us, and nothing ever comes: it wakes up when we are gone, or we end it before.
_WATCHMAN = """
read -r _
kill -s "$2" "$1"
for _ in $(seq 50); do
  kill -0 "$1" 2>/dev/null || break
  sleep 0.2
done
rm -rf "$3"
"""


class Service(ABC):
    """A test server; ``start``, ``stop`` and ``kill`` as often as needed, its port and folder stay.

    When the tests themselves are killed, a watchman ends it and removes its folder.
    """

    ended_by: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._watchman: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """The command to run, in the foreground."""

    @abstractmethod
    def is_ready(self) -> bool:
        """True if it answers."""

    @property
    def pid(self) -> int:
        """The process that the others of this server are children of."""
        assert self._process is not None, "it is not running"
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        assert self._process is None, "it is running"
        assert not _WITHOUT_SERVERS, "mark this test: pytest.mark.servers"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for the tests, they stop it then
                **as_owner(self.folder),
            )
        self._watchman = subprocess.Popen(
            ["sh", "-c", _WATCHMAN, "sh", str(self.pid), self.ended_by.name[3:], str(self.folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self._wait_for_answer(self._process)

    def stop(self) -> None:
        """Stop it in good order, with clients connected."""
        self._end(self.ended_by)

    def kill(self) -> None:
        """End it at once, as a power cut does to a process."""
        self._end(signal.SIGKILL)

    @property
    def _output(self) -> Path:
        return self.folder / "output"

    def _wait_for_answer(self, process: "subprocess.Popen[bytes]") -> None:
        for _ in range(int(PATIENCE / 0.02)):
            if self.is_ready():
                return
            try:
                process.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
            break
        self._end(signal.SIGKILL)
        pytest.fail(f"{type(self).__name__} does not start: {self._output.read_text('utf-8')}")

    def _end(self, with_signal: signal.Signals) -> None:
        if self._process is None or self._watchman is None:
            return
        self._process.send_signal(with_signal)
        self._process.wait(PATIENCE)
        self._watchman.kill()
        self._watchman.communicate()
        self._process = self._watchman = None


def program(name: str) -> str:
    """The path of a program; if it is missing the test is skipped, in CI it fails."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    return found or missing(name)


def missing(what: str) -> NoReturn:
    """A laptop may lack a server, and its tests are skipped; in CI they fail."""
    text = f"{what} is missing: run make services"
    if os.environ.get("CI"):
        pytest.fail(text)
    pytest.skip(text)


def made(path: str) -> Path:
    """The path of something that ``tools/services`` made; if it is missing, as for a program."""
    found = _MADE / path
    return found if found.exists() else missing(path)


def memory() -> Path | None:
    """Where files are kept in memory, if there is room."""
    is_roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM
    return _MEMORY if is_roomy else None


@contextmanager
def a_folder(name: str, *, ours: bool = False) -> Iterator[Path]:
    """A folder for a server, in memory where there is room: a busy disk makes every fsync a long one.

    A server inside this repository needs one that is ``ours``: no other user may be allowed to read it there.
    """
    with tempfile.TemporaryDirectory(prefix=f"carteiro-{name}-", dir=memory()) as folder:
        if os.getuid() == 0 and not ours:
            owner = pwd.getpwnam(_NOBODY)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        yield Path(folder)


def as_owner(folder: Path) -> dict[str, Any]:
    """Options for `subprocess` to run something in this folder, as its owner."""
    if os.getuid() != 0:
        return {"cwd": folder}
    owner = folder.stat()
    return {"cwd": folder, "user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}


def is_listening(port: int) -> bool:
    """True if the port takes connections."""
    try:
        with closing(socket.create_connection((HOST, port), PATIENCE)):
            return True
    except OSError:
        return False


def free_port() -> int:
    """A free port that the system gives to no client while its server is down."""
    chance = random.SystemRandom()  # parallel tests have the same seed
    for port in chance.sample(_PORTS, 100):
        try:
            with closing(socket.create_server((HOST, port))):
                return port
        except OSError:
            continue
    pytest.fail("no free port was found")

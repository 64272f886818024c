"""Servers of our own to measure on: each in a new folder on disk, durable, otherwise as they come."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier
from redis import Redis as Client

from figures import Missing
from processes import ended

_HOST = "127.0.0.1"
_ON_DISK = "/var/tmp"  # many keep /tmp in memory
_PATIENCE_S = 30.0
_LOOK_EVERY_S = 0.02
_POSTGRES_SETTINGS = {
    "listen_addresses": _HOST,
    "unix_socket_directories": "",
    "fsync": "on",
    "shared_buffers": "128MB",
}
_REDIS_SETTINGS = {
    "bind": _HOST,
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": "",
    "maxmemory-policy": "noeviction",
}
WAITS = ("Lock", "LWLock", "IO")  # IO: mostly the disk at a commit
_WAITING = (
    "SELECT wait_event_type FROM pg_stat_activity WHERE state = 'active'"
    " AND backend_type = 'client backend' AND wait_event_type = ANY(%s)"
)


# --- PostgreSQL -------------------------------------------------------------------------------


@dataclass
class Postgres:
    """A running server."""

    pid: int
    port: int

    def environ(self, database: str) -> dict[str, str]:
        """Environment of a measurement: this database, and the process whose CPU time is read."""
        return {"BENCH_STORE": self._url(database), "BENCH_SERVER_PIDS": str(self.pid)}

    @contextmanager
    def databases(self, *names: str) -> Iterator[None]:
        """New databases, which are dropped afterwards; what was written before is on disk."""
        with self.connected() as connection:
            for name in names:
                connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
            connection.execute("CHECKPOINT")
        try:
            yield
        finally:
            with self.connected() as connection:
                for name in names:
                    drop = SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name))
                    connection.execute(drop)

    @contextmanager
    def a_database(self) -> Iterator[dict[str, str]]:
        """Environment of a measurement: a new database."""
        with self.databases("bench"):
            yield self.environ("bench")

    @contextmanager
    def connected(self, database: str = "postgres") -> Iterator["psycopg.Connection[Any]"]:
        """A connection; each statement is a transaction, unless it begins one."""
        with closing(psycopg.connect(self._url(database), autocommit=True)) as connection:
            yield connection

    def _url(self, database: str) -> str:
        return f"postgresql://postgres@{_HOST}:{self.port}/{database}"


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Start a server, and end it; `Missing` if there is none."""
    programs, port = _postgres_programs(), _free_port()
    with _folder() as folder:
        # Sorted as people sort, as on most servers.
        sorting = ["--locale=C", "--locale-provider=icu", "--icu-locale=en-US"]
        kind = ["--username=postgres", "--auth=trust", "--encoding=UTF8", *sorting]
        make = [f"{programs}/initdb", "--pgdata=data", *kind]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL, **_as_owner(folder))
        settings = [f"--{name}={value}" for name, value in _POSTGRES_SETTINGS.items()]
        command = [f"{programs}/postgres", "-D", "data", f"--port={port}", *settings]
        status = folder / "data" / "postmaster.pid"
        is_ready = lambda: status.exists() and "ready" in status.read_text("utf-8")  # noqa: E731
        with _running(command, folder, is_ready) as pid:
            yield Postgres(pid, port)


def _postgres_programs() -> Path:
    """The folder of the newest version: Debian installs several, none of them on PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: int(each.parts[-2]))
    found += [Path(each) for each in os.get_exec_path() if Path(each, "initdb").exists()]
    if not found:
        raise Missing("PostgreSQL is left out: there is none on this machine (make services)")
    return found[-1]


# --- who waits for a lock ---------------------------------------------------------------------


@contextmanager
def watched(server: Postgres) -> Iterator[dict[str, float]]:
    """For how many seconds connections waited for each of these, looked at fifty times a second."""
    seconds, over = dict.fromkeys(WAITS, 0.0), threading.Event()

    def look() -> None:
        with server.connected() as connection:
            while not over.wait(_LOOK_EVERY_S):
                for (kind,) in connection.execute(_WAITING, [[*WAITS]]):
                    seconds[kind] += _LOOK_EVERY_S

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seconds
    finally:
        over.set()
        looking.join()


# --- Redis ------------------------------------------------------------------------------------


@dataclass
class Redis:
    """A running server."""

    pid: int
    port: int

    @contextmanager
    def emptied(self) -> Iterator[dict[str, str]]:
        """Environment of a measurement: this server, empty."""
        url = f"redis://{_HOST}:{self.port}/0"
        with closing(Client.from_url(url)) as connection:
            connection.flushall()
        yield {"BENCH_QUEUE": url, "BENCH_SERVER_PIDS": str(self.pid)}


@contextmanager
def redis() -> Iterator[Redis]:
    """Start a server, and end it; `Missing` if there is none."""
    program, port = shutil.which("redis-server"), _free_port()
    if not program:
        raise Missing("Redis is left out: there is none on this machine (make services)")
    settings = [part for name, value in _REDIS_SETTINGS.items() for part in (f"--{name}", value)]
    command = [program, "--port", str(port), *settings]
    with _folder() as folder, _running(command, folder, lambda: _answers(port)) as pid:
        yield Redis(pid, port)


# --- both -------------------------------------------------------------------------------------


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-", dir=_ON_DISK) as made:
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(made, nobody.pw_uid, nobody.pw_gid)
        yield Path(made)


def _as_owner(folder: Path) -> dict[str, Any]:
    """Options of `subprocess` to run a program in this folder: PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return {"cwd": folder}
    owner = folder.stat()
    return {"cwd": folder, "user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.create_server((_HOST, 0)) as free:
        return int(free.getsockname()[1])


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((_HOST, port)) == 0


@contextmanager
def _running(command: list[str], folder: Path, is_ready: Callable[[], bool]) -> Iterator[int]:
    """Its process id; both end normally when they are interrupted, even with clients connected."""
    with (folder / "output").open("wb") as output:
        server = subprocess.Popen(
            command, stdout=output, stderr=output, start_new_session=True, **_as_owner(folder)
        )
    try:
        until = time.monotonic() + _PATIENCE_S
        while not is_ready():
            if server.poll() is not None or time.monotonic() > until:
                text = (folder / "output").read_text("utf-8")
                raise RuntimeError(f"{command[0]} does not start: {text}")
            time.sleep(_LOOK_EVERY_S)
        yield server.pid
    finally:
        server.send_signal(signal.SIGINT)
        ended(server)

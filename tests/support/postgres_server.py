"""A real PostgreSQL server, run by the tests, and databases in it that are made in milliseconds."""

import asyncio
import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import psycopg
from psycopg.sql import SQL, Identifier

from support.services import HOST, PATIENCE, Service, a_folder, as_owner, missing

SUPERUSER = "postgres"
OLDEST = 15
OWNERS = (SUPERUSER, "carteiro")  # the schema of the second is the first that its search path names

Migrate: TypeAlias = Callable[[str], Coroutine[Any, Any, Any]]

_SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    "max_prepared_transactions": "10",  # some set-ups allow them
    "shared_buffers": "64MB",  # a template and its newest copies
    "max_wal_size": "256MB",
    # On, as it should be, but it never runs: while it reads a template, no process can copy
    # it.
    "autovacuum_naptime": "1d",
    # A plan that a test forces is a dear one by its figures, and would be compiled: a tenth of a second each.
    "jit": "off",
}


class SqlRefused(Exception):
    """The server or psql refused it; the text is theirs."""


class PostgresServer(Service):
    """The server, its superuser and its databases."""

    ended_by = signal.SIGINT  # SIGTERM would wait until all clients have disconnected

    def __init__(
        self, folder: Path, *, password: str = "", settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(folder)
        self._password = password
        self._settings = _SETTINGS | dict(settings or {})
        self._templates: dict[tuple[Migrate, str], str] = {}
        self._kept: psycopg.Connection[tuple[Any, ...]] | None = None

    def url(self, database: str = SUPERUSER, *, user: str = SUPERUSER) -> str:
        """The address of a database, for a client who is this user."""
        password = f":{self._password}" if self._password else ""
        return f"postgresql://{user}{password}@{HOST}:{self.port}/{database}"

    # --- the server

    def initialize(self) -> None:
        """Create its data folder."""
        command = [_program("initdb"), f"--pgdata={self._data}", f"--username={SUPERUSER}"]
        command += ["--no-sync", "--encoding=UTF8", "--locale=C", *self._authentication()]
        # Most servers sort as people do: SQL that depends on the order of bytes must say
        # so.
        command += ["--locale-provider=icu", "--icu-locale=en-US"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **as_owner(self.folder))

    def command(self) -> list[str]:
        """The server in the foreground."""
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        return [_program("postgres"), "-D", str(self._data), f"--port={self.port}", *settings]

    def is_ready(self) -> bool:
        """True if it takes queries: after a kill it reads its log first."""
        try:
            psycopg.connect(self.url()).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """Stop it in good order, with clients connected."""
        self._forget()
        super().stop()

    def kill(self) -> None:
        """Kill all of its processes at once: none of them can write anything more."""
        self._forget()
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)  # it makes no more children, and reaps none
        _kill(_children(self.pid))
        super().kill()

    # --- its databases

    def create_database(
        self, name: str, *, template: str = "template1", owner: str = SUPERUSER
    ) -> None:
        """Make a database, as a copy of another: of its files, which takes less than by way of the log."""
        self._execute(
            "CREATE DATABASE {} TEMPLATE {} OWNER {} STRATEGY file_copy", name, template, owner
        )

    def drop_database(self, name: str) -> None:
        """Drop a database, with clients connected; a missing one is ignored."""
        # DROP looks whether they have gone, and if not, again after a tenth of a second.
        self.disconnect(name)
        self._execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    def disconnect(self, name: str, *, but: int = 0) -> None:
        """End all connections to a database but this one; return when they have gone."""
        for _ in range(int(PATIENCE / 0.002)):
            ended = self._superuser().execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> %s",
                (name, but),
            )
            if not ended.rowcount:
                break
            time.sleep(0.002)

    def template(self, migrate: Migrate, *, owner: str = SUPERUSER) -> str:
        """The database that this has migrated, as a template for others; created on first use."""
        if (migrate, owner) not in self._templates:
            name = f"template_{uuid4().hex}"
            self._make_role(owner)
            self.create_database(name, owner=owner)
            # In a thread, because the caller may be on a loop already.
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, migrate(self.url(name, user=owner))).result()
            self._templates[migrate, owner] = name
        return self._templates[migrate, owner]

    def new_database(self, migrate: Migrate | None = None, *, owner: str = SUPERUSER) -> str:
        """The name of a separate, empty database for its owner, migrated by this."""
        name = f"test_{uuid4().hex}"
        template = self.template(migrate, owner=owner) if migrate else "template1"
        self.create_database(name, template=template, owner=owner)
        return name

    @contextmanager
    def a_database(
        self, migrate: Migrate | None = None, *, owner: str = SUPERUSER
    ) -> Iterator[str]:
        """The URL of a separate, empty database for its owner, migrated by this; it is dropped afterwards."""
        name = self.new_database(migrate, owner=owner)
        try:
            yield self.url(name, user=owner)
        finally:
            self.drop_database(name)

    def _make_role(self, name: str) -> None:
        found = self._superuser().execute("SELECT FROM pg_roles WHERE rolname = %s", (name,))
        if not found.rowcount:
            self._execute("CREATE ROLE {} LOGIN CREATEROLE", name)

    def psql(self, sql: str, database: str = SUPERUSER, *, user: str = SUPERUSER) -> str:
        """The output of psql, without decoration; a refusal ends it and raises `SqlRefused`."""
        command = [_program("psql"), "--no-psqlrc", "--quiet", "--no-align", "--tuples-only"]
        command += ["--set=ON_ERROR_STOP=1", "--dbname", self.url(database, user=user)]
        ran = subprocess.run(command, input=sql, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise SqlRefused(ran.stderr)
        return ran.stdout.strip()

    # --- inside

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _authentication(self) -> list[str]:
        if not self._password:
            return ["--auth=trust"]
        secret = self.folder / "password"
        secret.write_text(self._password, "utf-8")
        return ["--auth=scram-sha-256", f"--pwfile={secret}"]

    def _execute(self, statement: str, *names: str) -> None:
        composed = SQL(statement).format(*map(Identifier, names))
        self._superuser().execute(composed)

    def _superuser(self) -> "psycopg.Connection[tuple[Any, ...]]":
        """A connection that is kept: a new one costs a fifth of a new database."""
        if self._kept is None or self._kept.closed:
            self._kept = psycopg.connect(self.url(), autocommit=True)
        return self._kept

    def _forget(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None


@contextmanager
def a_postgres(
    *, password: str = "", settings: Mapping[str, str] | None = None
) -> Iterator[PostgresServer]:
    """A running server; without the program the tests are skipped, in CI they fail."""
    _program("postgres")
    with a_folder("postgres") as folder:
        server = PostgresServer(folder, password=password, settings=settings)
        server.initialize()
        server.start()
        try:
            yield server
        finally:
            server.stop()


def dumped(url: str, *options: str) -> bytes:
    """All of a database as SQL, or the part that the options of pg_dump choose."""
    command = [_program("pg_dump"), "--dbname", url, *options]
    return subprocess.run(command, check=True, capture_output=True).stdout


def _program(name: str) -> str:
    return str(_programs() / name)


@cache
def _programs() -> Path:
    """The folder of the newest PostgreSQL: Debian installs several in parallel, none of them on PATH."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin")]
    folders += [Path(found).parent for found in [shutil.which("postgres")] if found]
    newest = max(folders, key=_version, default=None)
    if newest is None or _version(newest) < OLDEST:
        missing(f"PostgreSQL {OLDEST} or newer")
    return newest


def _version(folder: Path) -> int:
    program = folder / "postgres"
    if not program.exists():
        return 0
    ran = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"\) (\d+)", ran.stdout)
    return int(found[1]) if found else 0


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _kill(pids: list[int]) -> None:
    """Return when they are dead; their pids may last longer, until their parent reaps them."""
    descriptors = [os.pidfd_open(pid) for pid in pids]
    for descriptor in descriptors:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    for descriptor in descriptors:
        select.select([descriptor], [], [], PATIENCE)
        os.close(descriptor)

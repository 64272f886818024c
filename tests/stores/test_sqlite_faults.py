"""A file that cannot be read, written or extended: a clear error, and every accepted message is stored.

Parts that need a separate process (a limit, another user, many at once) are done by this file
run as a program: see `main`.
"""

import asyncio
import ctypes
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from carteiro.errors import (
    SchemaMismatch,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from carteiro.model import Accepted, MessageId, Settled, State
from carteiro.ports import Backend
from carteiro.stores.sqlite import SqliteOptions, open_sqlite, opening, store, writer
from support.builders import ACME, a_message, messages, sent
from support.steps import accepted, claimed, claimed_and_declared, declare, settled

_POLL_S = 0.01
_MANY = 8
_ROOM_BYTES = 64 * 1024


# --- a file that cannot be opened -------------------------------------------------------------


async def test_missing_folder_is_named(tmp_path: Path) -> None:
    """It is not created: a mistyped path must not become a second, empty store."""
    file = tmp_path / "nowhere" / "carteiro.db"

    with pytest.raises(StoreUnavailable, match="check that its folder exists"):
        await _open(file)

    assert not file.parent.exists()


async def test_folder_in_place_of_the_file_is_reported(tmp_path: Path) -> None:
    """It cannot be opened."""
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await _open(tmp_path)


async def test_file_that_is_not_a_database_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Dear Ana, this is not a database at all. " * 100)
    before = file.read_bytes()

    with pytest.raises(StoreCorrupt, match="damaged or not a database"):
        await _open(file)

    assert file.read_bytes() == before


async def test_newer_schema_is_refused_and_not_changed(tmp_path: Path) -> None:
    """An old program must not write into an unknown schema."""
    file = await _a_store(tmp_path)
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 9999")

    with pytest.raises(SchemaMismatch, match="upgrade this program"):
        await _open(file)

    with closing(sqlite3.connect(file)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (9999,)


async def test_schema_of_other_texts_is_refused_and_not_changed(tmp_path: Path) -> None:
    """A file of an unreleased version has the right number and other tables: there is no migration from it."""
    file = await _a_store(tmp_path)
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA application_id = 1")
    before = file.read_bytes()

    with pytest.raises(SchemaMismatch, match=r"unreleased version of Carteiro.*name another"):
        await _open(file)

    assert file.read_bytes() == before


# --- a new file -------------------------------------------------------------------------------


async def test_only_the_owner_can_read_a_new_file(tmp_path: Path) -> None:
    """It has mail inside, and so have its log and a copy."""
    file, copy = tmp_path / "post.db", tmp_path / "copy.db"

    async with open_sqlite(file) as backend:
        await backend.upkeep.backup(copy, lambda _share: None)
        modes = _modes(tmp_path)

    assert {"post.db", "post.db-wal", "copy.db"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def _modes(folder: Path) -> dict[str, int]:
    return {each.name: each.stat().st_mode & 0o777 for each in folder.iterdir()}


# --- a damaged file ---------------------------------------------------------------------------


async def test_truncated_file_accepts_nothing(tmp_path: Path) -> None:
    """The damage is found at the latest when it is written to."""
    file = await _a_store(tmp_path)
    os.truncate(file, file.stat().st_size // 2)

    with pytest.raises(StoreCorrupt, match="restore it from a backup"):
        await _open_and_accept(file)


async def test_file_with_overwritten_pages_accepts_nothing(tmp_path: Path) -> None:
    """The damage is found by a read."""
    file = await _a_store(tmp_path)
    with file.open("r+b") as pages:
        pages.seek(4096)
        pages.write(b"\xff" * (file.stat().st_size - 4096))

    with pytest.raises(StoreCorrupt, match="restore it from a backup"):
        await _open_and_accept(file)


# --- a file that cannot be written ------------------------------------------------------------


@pytest.mark.parametrize("what", ["file", "folder"])
def test_read_only_file_accepts_nothing(tmp_path: Path, what: str) -> None:
    """The error points to the permissions."""
    file = asyncio.run(_a_store(tmp_path))

    with _protected(file if what == "file" else tmp_path):
        told = _as_program("accept-without-privileges", file)

    assert told.startswith("StoreUnavailable")
    assert "may we write" in told or "check its permissions" in told
    assert _stored(file) == []


async def test_locked_file_is_reported_and_works_again_afterwards(tmp_path: Path) -> None:
    """After its timeout the caller gets a retryable error; the store stays open."""
    file = await _a_store(tmp_path)
    async with open_sqlite(file, SqliteOptions(busy_timeout_ms=20)) as backend:
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match="locked by another process"):
                await backend.store.accept([a_message()])
            other.execute("ROLLBACK")

        [message] = await accepted(backend.store, a_message())

    assert _stored(file) == [message]


def test_processes_that_open_a_new_file_at_once_migrate_it_once(tmp_path: Path) -> None:
    """The first one creates the schema, the others wait for it, and all of them can write."""
    file = tmp_path / "carteiro.db"
    gate = tmp_path / "gate"

    programs = [_program("accept-at-gate", file, gate) for _ in range(_MANY)]
    while len(list(tmp_path.glob("ready-*"))) < _MANY:
        assert all(program.poll() is None for program in programs)
        time.sleep(_POLL_S)
    gate.touch()
    told = [program.communicate(timeout=60)[0].strip() for program in programs]

    assert sorted(told) == sorted(_stored(file))
    assert len(told) == _MANY


# --- a full disk ------------------------------------------------------------------------------


async def test_full_file_accepts_nothing_more_and_keeps_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answered messages are stored, refused ones are not, and the error says that the disk is full."""
    file = await _a_store(tmp_path)
    _fill_at(monkeypatch, pages=_pages(file) + _ROOM_BYTES // 4096)

    async with open_sqlite(file) as backend:
        taken, error = await _fill(backend)

    assert isinstance(error, StoreFull)
    assert "free some space" in str(error)
    assert taken
    assert _stored(file) == taken


async def test_messages_in_a_transaction_that_does_not_fit_are_stored_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite may roll back the whole transaction: then none of it is answered as stored."""
    file = await _a_store(tmp_path)
    _fill_at(monkeypatch, pages=_pages(file) + _ROOM_BYTES // 4096)
    small, large = a_message(), a_message(content='"' + "x" * 4 * _ROOM_BYTES + '"')

    async with open_sqlite(file) as backend:
        answers = await asyncio.gather(
            backend.store.accept([small]),
            backend.store.accept([large]),
            return_exceptions=True,
        )

    assert isinstance(answers[1], StoreFull)
    assert _stored(file) == ([] if isinstance(answers[0], StoreFull) else [small.id])


def test_disk_that_refuses_writes_accepts_nothing_more_and_keeps_its_data(
    tmp_path: Path,
) -> None:
    """Where the file may not grow, messages are refused with a clear error; answered ones are all there."""
    file = asyncio.run(_a_store(tmp_path))

    *taken, error = _as_program("fill-under-limit", file).splitlines()

    assert error.startswith(("StoreUnavailable", "StoreFull"))
    assert taken
    assert _stored(file) == taken


async def test_below_the_reserve_messages_settle_and_none_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of the disk is kept for accepted messages."""
    free = SimpleNamespace(free=10_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: free)
    monkeypatch.setattr(store, "_LOOK_AT_DISK_EVERY_S", 0.0)
    file = await _a_store(tmp_path)

    async with open_sqlite(file, SqliteOptions(min_free_bytes=1_000_000)) as backend:
        [message] = await accepted(backend.store, a_message())
        free.free = 999_999
        with pytest.raises(StoreFull, match="free some space"):
            await backend.store.accept([a_message()])
        job = await claimed_and_declared(backend.store)
        answer = await settled(backend.store, job, sent())
        free.free = 10_000_000
        [later] = await accepted(backend.store, a_message())

    assert answer == Settled(State.SENT)
    assert _stored(file) == [message, later]


async def test_settles_fit_into_the_reserve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages accepted before the reserve can be claimed, declared and settled inside it."""
    file = await _a_store(tmp_path)
    async with open_sqlite(file) as backend:
        await accepted(backend.store, *messages(100))
    _fill_at(monkeypatch, pages=_pages(file) + 1_000_000 // 4096)

    async with open_sqlite(file) as backend:
        jobs = await claimed(backend.store, limit=100)
        for job in jobs:
            await declare(backend.store, job)
        answers = [await settled(backend.store, job, sent()) for job in jobs]

    assert answers == [Settled(State.SENT)] * 100


# --- steps ------------------------------------------------------------------------------------


async def _a_store(folder: Path) -> Path:
    """A store with a tenant and no message, closed."""
    file = folder / "carteiro.db"
    async with open_sqlite(file) as backend:
        await backend.tenants.ensure([ACME])
    return file


async def _open(file: Path) -> None:
    async with open_sqlite(file):
        pass


async def _open_and_accept(file: Path) -> None:
    async with open_sqlite(file) as backend:
        await backend.store.accept([a_message()])


async def _fill(backend: Backend) -> tuple[list[MessageId], StoreError]:
    """Accept until there is no room: the accepted messages, and the error."""
    taken: list[MessageId] = []
    while True:
        try:
            [answer] = await backend.store.accept([a_message(content='"' + "x" * 2000 + '"')])
        except StoreError as error:
            return taken, error
        assert isinstance(answer, Accepted)
        taken.append(answer.id)


def _stored(file: Path) -> list[MessageId]:
    with closing(sqlite3.connect(file)) as db:
        return [row[0] for row in db.execute("SELECT id FROM messages ORDER BY rowid")]


def _pages(file: Path) -> int:
    with closing(sqlite3.connect(file)) as db:
        return int(db.execute("PRAGMA page_count").fetchone()[0])


def _fill_at(monkeypatch: pytest.MonkeyPatch, *, pages: int) -> None:
    """Limit the file to this many pages, as a full disk would."""
    connect = opening.connect

    def limited(path: Path, **options: Any) -> sqlite3.Connection:
        connection = connect(path, **options)
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(writer, "connect", limited)


@contextmanager
def _protected(path: Path) -> Iterator[None]:
    """A file or folder that its owner may only read, until the block ends."""
    before = path.stat().st_mode
    path.chmod(before & 0o555)
    try:
        yield
    finally:
        path.chmod(before)


# --- in separate processes --------------------------------------------------------------------


def _program(what: str, *arguments: Path) -> "subprocess.Popen[str]":
    path = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-W", "error", __file__, what, *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path}
    )


def _as_program(what: str, *arguments: Path) -> str:
    with _program(what, *arguments) as program:
        told, _ = program.communicate(timeout=60)
    assert program.returncode == 0
    return told


def _accept_without_privileges(file: Path) -> None:
    if os.geteuid() == 0:
        _obey_permissions()
    try:
        asyncio.run(_open_and_accept(file))
    except StoreError as error:
        _tell(type(error).__name__, error)


def _obey_permissions() -> None:
    """Give up root's right to write against permissions (CAP_DAC_OVERRIDE and _READ_SEARCH).

    Another user would do, but may not read the program's own files.
    """
    libc = ctypes.CDLL(None)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    sets[0] &= ~0b110
    assert libc.capset(header, sets) == 0


def _accept_at_gate(file: Path, gate: Path) -> None:
    (gate.parent / f"ready-{os.getpid()}").touch()
    while not gate.exists():
        time.sleep(_POLL_S / 10)

    async def accept() -> None:
        async with open_sqlite(file) as backend:
            await backend.tenants.ensure([ACME])
            [message] = await accepted(backend.store, a_message(id=f"message-{os.getpid()}"))
            _tell(message)

    asyncio.run(accept())


def _fill_under_limit(file: Path) -> None:
    """Fill the store while no file of ours may grow beyond a limit."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limit = file.stat().st_size + _ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    async def fill() -> None:
        async with open_sqlite(file) as backend:
            taken, error = await _fill(backend)
        for each in taken:
            _tell(each)
        _tell(type(error).__name__, error)

    asyncio.run(fill())


def _tell(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")


_PROGRAMS: dict[str, Callable[..., Any]] = {
    "accept-without-privileges": _accept_without_privileges,
    "accept-at-gate": _accept_at_gate,
    "fill-under-limit": _fill_under_limit,
}

if __name__ == "__main__":
    _PROGRAMS[sys.argv[1]](*map(Path, sys.argv[2:]))


async def test_caller_gets_an_answer_even_if_the_rollback_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails at the commit, at the rollback and at the next opening leaves nobody waiting."""
    is_broken = False

    class Breaking:
        def __init__(self, connection: Any) -> None:
            self._connection = connection

        def execute(self, statement: str, *parameters: Any) -> Any:
            if is_broken and statement in {"COMMIT", "ROLLBACK"}:
                raise sqlite3.OperationalError("disk I/O error")
            return self._connection.execute(statement, *parameters)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

    plain = opening.connect
    openings = 0

    def breaking(path: Path, **options: Any) -> Any:
        nonlocal openings
        openings += 1
        if openings == 2:
            raise sqlite3.OperationalError("unable to open database file")
        return Breaking(plain(path, **options))

    monkeypatch.setattr(writer, "connect", breaking)
    async with open_sqlite(tmp_path / "post.db") as backend:
        is_broken = True
        with pytest.raises(StoreError):
            async with asyncio.timeout(10):
                await backend.tenants.ensure([ACME])
        is_broken = False
        with pytest.raises(StoreError):
            await backend.tenants.ensure([ACME])
        await backend.tenants.ensure([ACME])

        assert await backend.tenants.find([ACME]) != [None]

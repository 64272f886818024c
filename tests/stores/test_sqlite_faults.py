"""A file that cannot be read, written or filled any further: a clear error, and nothing accepted that is not stored.

What must happen in a process of its own (a limit, another user, many at once) is done by this file
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


async def test_a_missing_folder_is_told_by_name(tmp_path: Path) -> None:
    """It is not made: a mistyped path must not become a second, empty store."""
    file = tmp_path / "nowhere" / "carteiro.db"

    with pytest.raises(StoreUnavailable, match="does its folder exist"):
        await _open(file)

    assert not file.parent.exists()


async def test_a_folder_in_place_of_the_file_is_told(tmp_path: Path) -> None:
    """What is not a file cannot be opened."""
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await _open(tmp_path)


async def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    """Whatever it is, it is somebody's."""
    file = tmp_path / "letter.txt"
    file.write_text("Dear Ana, this is no database at all. " * 100)
    before = file.read_bytes()

    with pytest.raises(StoreCorrupt, match="damaged or not a database"):
        await _open(file)

    assert file.read_bytes() == before


async def test_a_newer_schema_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """An old program must not write into what it does not know."""
    file = await _a_store(tmp_path)
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 9999")

    with pytest.raises(SchemaMismatch, match="upgrade this program"):
        await _open(file)

    with closing(sqlite3.connect(file)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (9999,)


async def test_a_schema_made_of_other_texts_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """A file of an unreleased version has the right number and other tables: no migration leads on from there."""
    file = await _a_store(tmp_path)
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA application_id = 1")
    before = file.read_bytes()

    with pytest.raises(SchemaMismatch, match=r"unreleased version of Carteiro.*name another"):
        await _open(file)

    assert file.read_bytes() == before


# --- a new file -------------------------------------------------------------------------------


async def test_nobody_but_its_owner_reads_a_new_file(tmp_path: Path) -> None:
    """Mail is inside, and in the log beside it, and in a copy."""
    file, copy = tmp_path / "post.db", tmp_path / "copy.db"

    async with open_sqlite(file) as backend:
        await backend.upkeep.backup(copy, lambda _share: None)
        modes = _modes(tmp_path)

    assert {"post.db", "post.db-wal", "copy.db"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def _modes(folder: Path) -> dict[str, int]:
    return {each.name: each.stat().st_mode & 0o777 for each in folder.iterdir()}


# --- a damaged file ---------------------------------------------------------------------------


async def test_a_truncated_file_accepts_nothing(tmp_path: Path) -> None:
    """Half a database is a damaged one, found at the latest when it is written to."""
    file = await _a_store(tmp_path)
    os.truncate(file, file.stat().st_size // 2)

    with pytest.raises(StoreCorrupt, match="restore it from a backup"):
        await _open_and_accept(file)


async def test_a_file_with_overwritten_pages_accepts_nothing(tmp_path: Path) -> None:
    """A page of nonsense is found by who reads it."""
    file = await _a_store(tmp_path)
    with file.open("r+b") as pages:
        pages.seek(4096)
        pages.write(b"\xff" * (file.stat().st_size - 4096))

    with pytest.raises(StoreCorrupt, match="restore it from a backup"):
        await _open_and_accept(file)


# --- a file that cannot be written ------------------------------------------------------------


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_is_read_only_accepts_nothing(tmp_path: Path, what: str) -> None:
    """Who may not write is told to look at the permissions, and nothing is accepted."""
    file = asyncio.run(_a_store(tmp_path))

    with _protected(file if what == "file" else tmp_path):
        told = _as_program("accept-without-privileges", file)

    assert told.startswith("StoreUnavailable")
    assert "may we write" in told or "check its permissions" in told
    assert _stored(file) == []


async def test_a_file_locked_by_another_is_told_and_works_again_afterwards(tmp_path: Path) -> None:
    """After the time to wait for others, the caller is told to try again; the store stays open."""
    file = await _a_store(tmp_path)
    async with open_sqlite(file, SqliteOptions(busy_timeout_ms=20)) as backend:
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match="locked by another process"):
                await backend.store.accept([a_message()])
            other.execute("ROLLBACK")

        [message] = await accepted(backend.store, a_message())

    assert _stored(file) == [message]


def test_many_processes_that_open_a_new_file_at_once_migrate_it_once(tmp_path: Path) -> None:
    """Whoever comes first makes the schema, the others wait for it, and all of them can write."""
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


async def test_a_full_file_takes_nothing_more_and_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was answered is stored, what was refused is not, and an error says that the disk is full."""
    file = await _a_store(tmp_path)
    _fill_at(monkeypatch, pages=_pages(file) + _ROOM_BYTES // 4096)

    async with open_sqlite(file) as backend:
        taken, error = await _fill(backend)

    assert isinstance(error, StoreFull)
    assert "free some space" in str(error)
    assert taken
    assert _stored(file) == taken


async def test_what_shares_a_transaction_with_what_does_not_fit_is_stored_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite may give the whole transaction up: then nobody of it is answered as if it were stored."""
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


def test_a_disk_that_refuses_to_write_takes_nothing_more_and_keeps_what_it_has(
    tmp_path: Path,
) -> None:
    """Where the file may not grow, messages are refused with a clear error; those answered are all there."""
    file = asyncio.run(_a_store(tmp_path))

    *taken, error = _as_program("fill-under-limit", file).splitlines()

    assert error.startswith(("StoreUnavailable", "StoreFull"))
    assert taken
    assert _stored(file) == taken


async def test_below_the_reserve_nothing_is_accepted_and_what_is_there_still_settles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of the disk is kept for what was accepted already."""
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
    """What is accepted when the reserve is reached can be claimed, declared and settled inside it."""
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
    """Accept until there is no room: what was taken, and what was said then."""
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
    """Let the file have no more pages than these, as a disk does that is full then."""
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


# --- in processes of their own ----------------------------------------------------------------


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
    """Give up what lets root write where its permissions do not (CAP_DAC_OVERRIDE and _READ_SEARCH).

    To become somebody else would do, but that one may not read the program's own files.
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


async def test_whoever_asked_is_answered_when_not_even_the_roll_back_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails at the commit, at the roll-back and at the next opening leaves nobody waiting."""
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

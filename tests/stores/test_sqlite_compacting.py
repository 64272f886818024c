"""The size of the file: new ones shrink by themselves, those of older releases after one compaction."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from carteiro.model import ZERO
from carteiro.ports import Backend
from carteiro.stores.migrations import migrations_of
from carteiro.stores.sqlite import open_sqlite
from carteiro.stores.sqlite.opening import INCREMENTAL, PACKAGE, connect
from support.builders import ACME, a_tenant, messages


def _older_file(path: Path) -> None:
    """A file as the first release made it."""
    first = migrations_of(PACKAGE)[0]
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(first.script)
        db.execute(f"PRAGMA user_version = {first.number}")
        db.execute(f"PRAGMA application_id = {first.digest}")


def _kind_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("PRAGMA auto_vacuum").fetchone()[0])


async def _filled_and_pruned(backend: Backend) -> None:
    await backend.tenants.define([a_tenant(ACME)])
    new = messages(100, content="x" * 20_000)
    await backend.store.accept(new)
    await backend.store.cancel([each.id for each in new], tenant=ACME)
    while (await backend.upkeep.prune(bodies=ZERO, histories=timedelta(days=1))).has_more:
        pass


async def test_new_file_shrinks_by_itself(tmp_path: Path) -> None:
    """It is set up for it, before its first table."""
    async with open_sqlite(tmp_path / "new.db") as backend:
        await _filled_and_pruned(backend)

    assert _kind_of(tmp_path / "new.db") == INCREMENTAL
    assert (tmp_path / "new.db").stat().st_size < 1_000_000


async def test_file_of_an_older_release_is_compacted_once(tmp_path: Path) -> None:
    """Until then it keeps its free pages; from then on it is like a new one."""
    path = tmp_path / "older.db"
    _older_file(path)

    async with open_sqlite(path) as backend:
        await _filled_and_pruned(backend)
        kind_before = _kind_of(path)
        given_back = await backend.upkeep.compact()

    assert kind_before != INCREMENTAL
    assert given_back > 1_000_000
    assert _kind_of(path) == INCREMENTAL
    assert path.stat().st_size < 1_000_000


async def test_opening_a_file_again_writes_nothing(tmp_path: Path) -> None:
    """Many processes open one file: none of them may wait for another, or wake it."""
    path = tmp_path / "new.db"
    async with open_sqlite(path) as backend:
        await backend.tenants.define([a_tenant(ACME)])
        with closing(connect(path, busy_timeout_ms=1000)) as watching:
            before = watching.execute("PRAGMA data_version").fetchone()
            with closing(connect(path, busy_timeout_ms=1000)):
                pass

            assert watching.execute("PRAGMA data_version").fetchone() == before

"""Rows of an accept in a SQLite file: everything or nothing, and no more than needed."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from carteiro.errors import StoreError
from carteiro.model import ApiLimits, IdempotencyKey, NewMessage
from carteiro.stores.sqlite import SqliteOptions, open_sqlite
from support.builders import ACME, a_message, a_tenant, messages
from support.clock import StoreClock
from support.steps import accepted

_WRITTEN = (
    "messages",
    "contents",
    "unfinished",
    "ready",
    "message_tags",
    "idempotency_keys",
    "api_counts",
)
_LIMITS = ApiLimits(100, 100, 100)


def _whole() -> NewMessage:
    """A message with every optional part."""
    return a_message(tags=("news",), key=IdempotencyKey("key", "digest"), limits=_LIMITS)


def _rows(file: Path) -> dict[str, int]:
    with closing(sqlite3.connect(file)) as db:
        return {
            table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _WRITTEN
        }


@contextmanager
def _broken(file: Path, table: str) -> Iterator[None]:
    """Make the table refuse writes during the block."""
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute(
            f"CREATE TRIGGER broken BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        yield
        db.execute("DROP TRIGGER broken")


@pytest.mark.parametrize("table", _WRITTEN)
async def test_failed_accept_leaves_nothing(tmp_path: Path, table: str) -> None:
    """Message, job, tags, key and count are one: a part that cannot be written undoes all."""
    file = tmp_path / "post.db"
    async with open_sqlite(file) as backend:
        await backend.tenants.define([a_tenant()])

        with _broken(file, table), pytest.raises(StoreError):
            await backend.store.accept([_whole()])
        after_failure = _rows(file)
        await accepted(backend.store, _whole())

    assert after_failure == dict.fromkeys(_WRITTEN, 0)
    assert _rows(file) == dict.fromkeys(_WRITTEN, 1) | {"api_counts": 3}


async def test_past_windows_do_not_pile_up(tmp_path: Path) -> None:
    """However long a tenant sends, it has a row for each length of window."""
    file, clock = tmp_path / "post.db", StoreClock()
    async with open_sqlite(file, SqliteOptions(clock=clock)) as backend:
        await backend.tenants.define([a_tenant(ACME)])
        for _ in range(30):
            await accepted(backend.store, *messages(1, limits=_LIMITS))
            clock.advance(timedelta(hours=5))

    assert _rows(file)["api_counts"] == 3


async def test_unused_features_cost_no_statement(tmp_path: Path) -> None:
    """Plain messages neither read nor write keys, counts and tags, in any number."""
    asked: list[str] = []
    async with open_sqlite(tmp_path / "post.db") as backend:
        await backend.tenants.define([a_tenant()])
        backend.store._writer._connection.set_trace_callback(asked.append)  # type: ignore[attr-defined]
        await accepted(backend.store, *messages(50))

    text = "\n".join(asked)
    assert "INSERT INTO messages" in text
    for table in ("idempotency_keys", "api_counts", "message_tags"):
        assert table not in text


@pytest.mark.parametrize("given", [None, "", "0", "order-1"])
async def test_every_row_of_a_list_is_stored_as_given(tmp_path: Path, given: str | None) -> None:
    """Rows are written by the hundred, by ten and one by one, and a missing text is not an empty one."""
    new = messages(123, external_id=given, subject=given)
    async with open_sqlite(tmp_path / "post.db") as backend:
        await backend.tenants.define([a_tenant()])
        await accepted(backend.store, *new)
        stored = [await backend.reading.message(each.id) for each in new]

    assert [(each.id, each.external_id, each.subject) for each in stored if each] == [
        (each.id, given, given) for each in new
    ]
    assert _rows(tmp_path / "post.db") == dict.fromkeys(_WRITTEN, 0) | (
        dict.fromkeys(("messages", "contents", "unfinished", "ready"), 123)
    )

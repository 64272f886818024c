"""The session of the shared ports: named parameters, and operations that never wait on SQLite."""

import ast
import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from carteiro.stores import sql
from carteiro.stores.postgres import PostgresOptions
from carteiro.stores.postgres.database import Database as PostgresDatabase
from carteiro.stores.sql.session import Database, Session
from carteiro.stores.sqlite.database import SqliteDatabase, finished
from carteiro.stores.sqlite.reader import Reader
from carteiro.stores.sqlite.writer import Writer
from carteiro.stores.statements import expanded, numbered, statements_of
from support.shared_servers import a_migrated_database

NOW = 1_000


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.servers)])
async def db(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """A database of each dialect, without a tenant."""
    if request.param == "postgres":
        with a_migrated_database() as url:
            opened = PostgresDatabase(url, PostgresOptions(clock=lambda: NOW))
            await opened.open()
            yield opened
            await opened.close()
        return
    path = tmp_path / "post.db"
    writer = Writer(
        path, busy_timeout_ms=100, has_work=lambda _: False, changed_elsewhere=lambda: None
    )
    await writer.start()
    reader = Reader(path, busy_timeout_ms=100)
    yield SqliteDatabase(writer, reader, lambda: NOW)
    await writer.stop()
    reader.close()


async def test_rows_are_written_as_one_list_and_read_back(db: Database) -> None:
    """A list of rows is JSON on SQLite and an array per column on Postgres; a list of values is one array."""
    await db.run("tenants_ensure", ids=["acme"], stride=1, now=NOW)
    row = ("key", "manual", "ana@example.com", NOW, None, True, "[]")

    stored = await db.run("suppressions_put", tenant="acme", rows=[row, ("key-2", *row[1:])])
    found = await db.fetch("suppressions_known", tenant="acme", keys=["key", "other"])

    assert stored == 2
    assert [tuple(each) for each in found] == [row]


async def test_empty_list_of_rows_writes_nothing(db: Database) -> None:
    """The caller need not check."""
    assert await db.run("suppressions_put", tenant="acme", rows=[]) == 0


async def test_missing_row_or_value_is_none(db: Database) -> None:
    assert await db.first("override_get", name="x") is None
    assert await db.value("override_get", name="x") is None
    assert await db.fetch("override_get", name="x") == []
    assert await db.run("override_drop", name="x") == 0


async def test_unused_parameter_is_left_out(db: Database) -> None:
    """Statements of one port take the same parameters, each the ones it names."""
    await db.run("override_set", name="x", setting="1", limit=3)

    assert await db.value("override_get", name="x", limit=3) == "1"


async def test_write_is_all_or_nothing(db: Database) -> None:
    """Writes before an exception are undone."""

    async def fail(session: Session) -> None:
        await session.run("override_set", name="x", setting="1")
        assert await session.value("override_get", name="x") == "1"
        raise LookupError

    with pytest.raises(LookupError):
        await db.write(fail)

    assert await db.value("override_get", name="x") is None


async def test_concurrent_writes_see_each_other_whole(db: Database) -> None:
    """Operations of many callers share a commit, not their statements."""

    async def count_up(session: Session) -> int:
        await session.run("tenants_ensure", ids=["acme"], stride=1, now=NOW)
        await session.value("tenant_lock", tenant="acme")
        count = int(await session.value("override_get", name="count") or 0) + 1
        await session.run("override_set", name="count", setting=str(count))
        return count

    counts = await asyncio.gather(*(db.write(count_up) for _ in range(20)))

    assert sorted(counts) == list(range(1, 21))


async def test_read_returns_the_result_of_its_operation(db: Database) -> None:
    """Several statements, one after the other."""

    async def look(session: Session) -> list[object]:
        return [await session.value("override_get", name=name) for name in ("x", "y")]

    await db.run("override_set", name="y", setting="2")

    assert await db.read(look) == [None, "2"]
    assert await db.now() == NOW


def test_waiting_operation_on_sqlite_is_a_bug() -> None:
    """It would block the writer, and all operations behind it."""

    async def wait() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="must not wait"):
        finished(wait())


@pytest.mark.parametrize(
    ("statement", "text", "names"),
    [
        ("SELECT :a, :b_1, :a", "SELECT $1, $2, $1", ["a", "b_1"]),
        ("SELECT :a::text, x::text, y[1:n]", "SELECT $1::text, x::text, y[1:n]", ["a"]),
        ("-- It's :a\nSELECT ':b', '\"c\":d', :e", "-- It's :a\nSELECT ':b', '\"c\":d', $1", ["e"]),
        ("SELECT 'it''s :a', :b", "SELECT 'it''s :a', $1", ["b"]),
    ],
)
def test_named_parameters_become_numbers(statement: str, text: str, names: list[str]) -> None:
    """Past casts, slices, texts and comments."""
    assert numbered(statement) == (text, names)


def test_shared_statements_lose_schema_and_casts_on_sqlite() -> None:
    """They are written once, in the syntax of Postgres."""
    shared = statements_of("carteiro.stores.sqlite", has_schema=False)["override_get"]

    assert "FROM overrides" in shared
    assert "FROM carteiro.overrides" in statements_of("carteiro.stores.postgres")["override_get"]


def test_a_statement_of_one_dialect_is_for_that_store_alone() -> None:
    """Both variants have one name and are in one file."""
    on_sqlite = statements_of("carteiro.stores.sqlite", has_schema=False)["alerts_put"]
    on_postgres = statements_of("carteiro.stores.postgres")["alerts_put"]

    assert "json_each" in on_sqlite
    assert "unnest" in on_postgres


def test_a_word_in_braces_becomes_a_list_of_columns() -> None:
    """An empty array and a path stay; a word that stands for no list is a mistake."""
    text = expanded("SELECT {shown}, '{}', x #> '{a,b}'")

    assert text.startswith("SELECT m.id, m.tenant, m.kind, m.state, ")
    assert text.endswith(", '{}', x #> '{a,b}'")
    with pytest.raises(KeyError):
        expanded("SELECT {columns} FROM messages")


def _named() -> Iterator[str]:
    """The statements that the shared ports name."""
    for file in Path(sql.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="fetch" | "first" | "value" | "run"),
                    args=[ast.Constant(value=str(name))],
                ):
                    yield name


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_every_dialect_has_the_statements_of_the_shared_ports(store: str) -> None:
    """One that a dialect does not need is a statement that does nothing."""
    named = set(_named())

    assert len(named) > 80
    assert named <= statements_of(f"carteiro.stores.{store}").keys()

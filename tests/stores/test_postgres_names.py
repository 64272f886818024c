"""Every name in the schema and in the statements has its schema: an owner's search path changes nothing."""

import re
from collections.abc import Iterator
from importlib import resources

import asyncpg
import psycopg
import pytest

from carteiro.stores.postgres import migrate
from carteiro.stores.statements import numbered, statements_of
from support.postgres_server import OWNERS, PostgresServer
from support.shared_servers import shared_postgres

pytestmark = pytest.mark.servers

FOLDER = resources.files("carteiro.stores.postgres")
TEXTS = {
    **{
        f"{folder}/{file.name}": file.read_text("utf-8")
        for folder in ("migrations", "functions")
        for file in (FOLDER / folder).iterdir()
    },
    **{
        f"sql/{name}": numbered(text)[0]
        for name, text in statements_of("carteiro.stores.postgres").items()
    },
}
SCRIPTS = {name: re.sub(r"--.*", "", text) for name, text in TEXTS.items()}
_OURS = "n.nspname IN ('carteiro', 'public')"
_RELATIONS = f"""
SELECT n.nspname, c.relname, c.relkind, (SELECT count(*) FROM pg_trigger AS t WHERE t.tgrelid = c.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE {_OURS}
"""
_FUNCTIONS = f"""
SELECT n.nspname, p.proname FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE {_OURS}
"""
_PREPARED = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")
_BEFORE_RELATIONS = (  # in capital letters, as all our SQL has them
    r"(?:FROM|JOIN|INTO|UPDATE|TABLE|VIEW|ALTER INDEX|SEQUENCE|TRIGGER|ON|REFERENCES|USING|SETOF|OF|LIKE|PARTITION)"
)


@pytest.fixture
def server() -> PostgresServer:
    """The server of the tests."""
    return shared_postgres()


def _listed(url: str, query: str) -> list[tuple[str, ...]]:
    with psycopg.connect(url) as db:
        return db.execute(query.encode()).fetchall()


def test_owner_named_like_the_schema_gets_the_same_schema(server: PostgresServer) -> None:
    """Relations, their triggers and functions, each in the same place."""
    made = []
    for owner in OWNERS:
        with server.a_database(migrate, owner=owner) as url:
            made.append([sorted(_listed(url, query)) for query in (_RELATIONS, _FUNCTIONS)])

    assert made[0] == made[1]


def _bare_names(script: str, relations: set[str], functions: set[str]) -> Iterator[str]:
    """Our names without a schema, except those that a query itself defines."""
    for part in script.split("$$"):
        defined = set(re.findall(r"\b(\w+)(?: \([^()]*\))? AS (?:MATERIALIZED )?\(", part))
        for found in re.finditer(rf"\b{_BEFORE_RELATIONS}\s+(?:ONLY\s+)?(\w+)\b(?!\.)", part):
            if found[1] in relations - defined:
                yield found[0]
        for found in re.finditer(r"(?<![\w.])(\w+)\(", part):
            if found[1] in functions:
                yield found[0]


def test_every_name_has_its_schema(server: PostgresServer) -> None:
    """Also inside functions, which the server parses only when they run, and in dynamic statements."""
    with server.a_database(migrate) as url:
        relations = {name for _, name, *_ in _listed(url, _RELATIONS)}
        functions = {name for _, name in _listed(url, _FUNCTIONS)}

    found = {
        name: list(_bare_names(script, relations, functions)) for name, script in SCRIPTS.items()
    }

    assert {name: bare for name, bare in found.items() if bare} == {}


@pytest.mark.parametrize(
    "bare",
    [
        "SELECT 1 FROM entries AS e",
        "SELECT now_ms() - 1",
        "EXECUTE format('INSERT INTO events SELECT * FROM carteiro.events_%s', 1)",
        "UPDATE ring SET n = 1",
    ],
)
def test_bare_name_is_found(bare: str) -> None:
    """Or the test above would prove nothing."""
    assert list(_bare_names(bare, {"entries", "events", "ring"}, {"now_ms"}))


async def test_statements_are_valid_without_a_search_path(server: PostgresServer) -> None:
    """By the server itself."""
    statements = [
        statement
        for name, script in SCRIPTS.items()
        for statement in script.split(";\n")
        if name.startswith("sql/")
        and statement.lstrip().startswith(_PREPARED)
        and "$$" not in script
    ]
    with server.a_database(migrate) as url:
        connection = await asyncpg.connect(url, server_settings={"search_path": ""})
        try:
            for statement in statements:
                await connection.prepare(statement)
        finally:
            await connection.close()

    assert len(statements) > 100

"""A database that is used again is as a migration leaves it; one that cannot be is dropped."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from carteiro.stores.postgres import PostgresOptions, open_postgres
from support.builders import ACME, a_message, tenants_named
from support.postgres_server import PostgresServer, dumped
from support.reused_databases import ReusedDatabases


def content(url: str) -> list[str]:
    """Everything of the product in a database; the tool writes another random word each time."""
    lines = dumped(url, "--schema=carteiro").decode().splitlines()
    return [line for line in lines if not line.startswith(("\\restrict", "\\unrestrict"))]


@pytest.fixture
def databases(postgres: PostgresServer) -> Iterator[ReusedDatabases]:
    with closing(ReusedDatabases(postgres)) as made:
        yield made


async def test_used_database_is_as_new(
    postgres: PostgresServer, databases: ReusedDatabases
) -> None:
    """Rows and numbers; connections are ended, also open ones."""
    used, unused = databases.take(), databases.take()
    async with open_postgres(postgres.url(used), PostgresOptions(connections=2)) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        await backend.store.accept([a_message()])
    left = psycopg.connect(postgres.url(used))
    before = content(postgres.url(used))

    databases.put_back(used)

    assert databases.take() == used
    with pytest.raises(psycopg.OperationalError):
        left.execute("SELECT 1")
    left.close()
    assert content(postgres.url(used)) == content(postgres.url(unused)) != before


def test_database_serves_again_after_all_connections_were_ended(
    postgres: PostgresServer, databases: ReusedDatabases
) -> None:
    """Also the one that empties it, and also for an owner with fewer rights."""
    of_an_owner = ReusedDatabases(postgres, "carteiro")
    with closing(of_an_owner):
        for each in (databases, of_an_owner):
            name = each.take()
            each.put_back(name)
            postgres.psql("INSERT INTO carteiro.overrides VALUES (1, 'a')", name)
            postgres.disconnect(name)

            each.put_back(each.take())

            assert each.take() == name
            assert postgres.psql("SELECT count(*) FROM carteiro.overrides", name) == "0"


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE carteiro.notes ADD COLUMN another text",
        "BEGIN; DROP FUNCTION carteiro.now_ms CASCADE; ROLLBACK",
        "GRANT SELECT ON carteiro.notes TO PUBLIC",
        "CREATE TABLE public.mine ()",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET jit = on', current_database()); END $$",
        "ANALYZE carteiro.migrations",
        "INSERT INTO carteiro.overrides SELECT n, repeat('long', 450) FROM generate_series(1, 3000) n",
    ],
)
def test_altered_database_is_dropped(
    postgres: PostgresServer, databases: ReusedDatabases, sql: str
) -> None:
    """Also by a command that was rolled back: nobody needs to know which ones leave traces."""
    name = databases.take()
    postgres.psql(sql, name)

    databases.put_back(name)

    assert name not in postgres.psql("SELECT datname FROM pg_database").splitlines()

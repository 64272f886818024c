"""The PostgreSQL server of the tests keeps every commit, and gives each test its own database."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from support.postgres_server import OLDEST, PostgresServer, SqlRefused, a_postgres

PASSWORD = "geheim-5e1f"


@pytest.fixture
def own() -> Iterator[PostgresServer]:
    """A server that a test may stop and kill."""
    with a_postgres() as server:
        yield server


async def migrate(url: str) -> None:
    """Stands for the migrations of a product."""
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute("CREATE TABLE note (text text)")


def note(url: str, text: str) -> None:
    """Commit a note."""
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO note VALUES (%s)", (text,))


def notes(url: str) -> list[str]:
    """All notes of a database."""
    with psycopg.connect(url) as connection:
        return [text for (text,) in connection.execute("SELECT text FROM note")]


def databases(server: PostgresServer) -> set[str]:
    """Names of all databases."""
    return set(server.psql("SELECT datname FROM pg_database").splitlines())


def test_server_is_recent_and_durable(postgres: PostgresServer) -> None:
    """Tests see what production sees: every commit is on disk."""
    assert int(postgres.psql("SHOW server_version_num")) >= OLDEST * 10_000
    assert postgres.psql("SHOW fsync; SHOW synchronous_commit; SHOW full_page_writes") == (
        "on\non\non"
    )


def test_every_database_is_migrated_and_empty(postgres: PostgresServer) -> None:
    """A test never sees the rows of another."""
    with postgres.a_database(migrate) as first, postgres.a_database(migrate) as second:
        note(first, "mine")

        assert notes(first) == ["mine"]
        assert notes(second) == []


async def test_migration_runs_once_also_for_a_test_on_a_loop(postgres: PostgresServer) -> None:
    """The other databases are copies: a migration costs more than a test."""
    runs = []

    async def counted(url: str) -> None:
        runs.append(url)
        await migrate(url)

    for _ in range(3):
        with postgres.a_database(counted) as url:
            assert notes(url) == []

    assert len(runs) == 1


def test_database_is_dropped_with_its_open_connections(postgres: PostgresServer) -> None:
    """A test that leaves a pool open leaves no database behind."""
    before = databases(postgres)

    with postgres.a_database() as url:
        left = psycopg.connect(url)

    assert databases(postgres) == before
    with pytest.raises(psycopg.OperationalError):
        left.execute("SELECT 1")
    left.close()


def test_database_can_be_dropped_twice(postgres: PostgresServer) -> None:
    postgres.create_database("once")

    postgres.drop_database("once")
    postgres.drop_database("once")

    assert "once" not in databases(postgres)


@pytest.mark.parametrize("end", [PostgresServer.stop, PostgresServer.kill])
def test_committed_rows_survive_a_restart(
    own: PostgresServer, end: Callable[[PostgresServer], None]
) -> None:
    """Same data, same port, another process; old connections are gone."""
    own.create_database("kept", template=own.template(migrate))
    before, url = own.pid, own.url("kept")
    note(url, "committed")
    open_one = psycopg.connect(url)

    end(own)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
    with pytest.raises(psycopg.OperationalError):
        open_one.execute("SELECT 1")
    own.start()

    assert notes(url) == ["committed"]
    assert own.pid != before
    own.drop_database("kept")
    open_one.close()


def test_psql_runs_a_script_as_any_user(postgres: PostgresServer) -> None:
    """A refusal has the text of the server."""
    with postgres.a_database(migrate) as url:
        database = url.rpartition("/")[2]
        postgres.psql("CREATE ROLE reader LOGIN; GRANT SELECT ON note TO reader", database)

        assert postgres.psql("SELECT current_user", database, user="reader") == "reader"
        with pytest.raises(SqlRefused, match="permission denied for table note"):
            postgres.psql("DELETE FROM note; SELECT 1", database, user="reader")

        postgres.psql("DROP OWNED BY reader; DROP ROLE reader", database)


def test_server_may_require_a_password_and_have_other_settings() -> None:
    """For tests of connection settings and of `doctor`."""
    with a_postgres(password=PASSWORD, settings={"fsync": "off"}) as server:
        assert server.psql("SHOW fsync") == "off"
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(server.url().replace(PASSWORD, "wrong"))

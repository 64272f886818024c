"""The PostgreSQL server of the tests keeps what it committed, and gives every test a database of its own."""

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
    """What a product's own migrations do."""
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
    """The databases that there are."""
    return set(server.psql("SELECT datname FROM pg_database").splitlines())


def test_it_is_one_that_may_be_trusted(postgres: PostgresServer) -> None:
    """Recent enough, and what it commits is on disk: the tests are to see what production sees."""
    assert int(postgres.psql("SHOW server_version_num")) >= OLDEST * 10_000
    assert postgres.psql("SHOW fsync; SHOW synchronous_commit; SHOW full_page_writes") == (
        "on\non\non"
    )


def test_every_database_is_migrated_and_empty(postgres: PostgresServer) -> None:
    """What one test writes no other sees."""
    with postgres.a_database(migrate) as first, postgres.a_database(migrate) as second:
        note(first, "mine")

        assert notes(first) == ["mine"]
        assert notes(second) == []


async def test_the_migration_runs_once_also_for_a_test_on_a_loop(postgres: PostgresServer) -> None:
    """The others are copies: a migration costs more than a test."""
    runs = []

    async def counted(url: str) -> None:
        runs.append(url)
        await migrate(url)

    for _ in range(3):
        with postgres.a_database(counted) as url:
            assert notes(url) == []

    assert len(runs) == 1


def test_a_database_goes_with_those_who_are_connected(postgres: PostgresServer) -> None:
    """A test that leaves a pool open leaves no database behind."""
    before = databases(postgres)

    with postgres.a_database() as url:
        left = psycopg.connect(url)

    assert databases(postgres) == before
    with pytest.raises(psycopg.OperationalError):
        left.execute("SELECT 1")
    left.close()


def test_a_database_can_be_dropped_twice(postgres: PostgresServer) -> None:
    """Who cleans up needs not know whether somebody has done so."""
    postgres.create_database("once")

    postgres.drop_database("once")
    postgres.drop_database("once")

    assert "once" not in databases(postgres)


@pytest.mark.parametrize("end", [PostgresServer.stop, PostgresServer.kill])
def test_what_was_committed_is_there_again(
    own: PostgresServer, end: Callable[[PostgresServer], None]
) -> None:
    """Same data, same port, another process; a connection from before is gone."""
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
    """And says in the server's words why it was refused."""
    with postgres.a_database(migrate) as url:
        database = url.rpartition("/")[2]
        postgres.psql("CREATE ROLE reader LOGIN; GRANT SELECT ON note TO reader", database)

        assert postgres.psql("SELECT current_user", database, user="reader") == "reader"
        with pytest.raises(SqlRefused, match="permission denied for table note"):
            postgres.psql("DELETE FROM note; SELECT 1", database, user="reader")

        postgres.psql("DROP OWNED BY reader; DROP ROLE reader", database)


def test_a_server_may_ask_for_a_password_and_be_set_otherwise() -> None:
    """For tests of what an operator writes into the settings, and of what `doctor` says."""
    with a_postgres(password=PASSWORD, settings={"fsync": "off"}) as server:
        assert server.psql("SHOW fsync") == "off"
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(server.url().replace(PASSWORD, "wrong"))

"""The PgBouncer of the tests lends a server connection for one transaction at a time."""

from contextlib import closing

import psycopg
import pytest

from support.pgbouncer import a_pgbouncer
from support.postgres_server import PostgresServer

BACKEND = "SELECT pg_backend_pid()"


def backend(connection: "psycopg.Connection[tuple[int]]") -> tuple[int] | None:
    """The server process that ran a transaction of this client."""
    with connection.transaction():
        return connection.execute(BACKEND).fetchone()


def test_clients_share_a_server_connection(postgres: PostgresServer) -> None:
    """State of a session is not the client's own, and a store must work without it."""
    with (
        a_pgbouncer(postgres, pool_size=1) as pooler,
        closing(psycopg.connect(pooler.url(), autocommit=True)) as first,
        closing(psycopg.connect(pooler.url(), autocommit=True)) as second,
    ):
        assert backend(first) == backend(second) == backend(first)


def test_pgbouncer_can_be_stopped_and_started_again(postgres: PostgresServer) -> None:
    """At the same port; meanwhile no client gets through."""
    with a_pgbouncer(postgres) as pooler:
        pooler.kill()
        with pytest.raises(psycopg.OperationalError, match="refused"):
            psycopg.connect(pooler.url())
        pooler.start()

        with psycopg.connect(pooler.url()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_pgbouncer_knows_only_its_configured_users(postgres: PostgresServer) -> None:
    """Any other is refused before it reaches the server."""
    with (
        a_pgbouncer(postgres, users=["postgres"]) as pooler,
        pytest.raises(psycopg.OperationalError, match="authentication failed"),
    ):
        psycopg.connect(pooler.url(user="stranger"))

"""The PgBouncer of the tests lends a connection of the server for a transaction, to one after the other."""

from contextlib import closing

import psycopg
import pytest

from support.pgbouncer import a_pgbouncer
from support.postgres_server import PostgresServer

BACKEND = "SELECT pg_backend_pid()"


def backend(connection: "psycopg.Connection[tuple[int]]") -> tuple[int] | None:
    """The process of the server that a transaction of this client ran in."""
    with connection.transaction():
        return connection.execute(BACKEND).fetchone()


def test_clients_share_a_connection_of_the_server(postgres: PostgresServer) -> None:
    """What is kept in a session is not the client's own: this is what a store must be able to live with."""
    with (
        a_pgbouncer(postgres, pool_size=1) as pooler,
        closing(psycopg.connect(pooler.url(), autocommit=True)) as first,
        closing(psycopg.connect(pooler.url(), autocommit=True)) as second,
    ):
        assert backend(first) == backend(second) == backend(first)


def test_it_can_be_ended_and_started_again(postgres: PostgresServer) -> None:
    """At the same port; meanwhile nobody gets through."""
    with a_pgbouncer(postgres) as pooler:
        pooler.kill()
        with pytest.raises(psycopg.OperationalError, match="refused"):
            psycopg.connect(pooler.url())
        pooler.start()

        with psycopg.connect(pooler.url()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_it_knows_the_users_it_was_told_of(postgres: PostgresServer) -> None:
    """Any other is turned away before the server hears of it."""
    with (
        a_pgbouncer(postgres, users=["postgres"]) as pooler,
        pytest.raises(psycopg.OperationalError, match="authentication failed"),
    ):
        psycopg.connect(pooler.url(user="stranger"))

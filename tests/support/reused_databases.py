"""Migrated databases that serve one test after another: emptying one is cheaper than making one.

A database is dropped instead if emptying it could leave a trace: after any command that alters its schema, after a
change of its settings, with statistics for the planner, or when it has grown.
"""

from typing import Any

import psycopg

from carteiro.stores.postgres import migrate
from support.postgres_server import SUPERUSER, PostgresServer

_PREPARE = """
CREATE SCHEMA reuse;

-- A sequence, not a row: it survives the rollback of the command, and makes nobody wait.
CREATE SEQUENCE reuse.alterations;
CREATE FUNCTION reuse.notice() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS
    $$ BEGIN PERFORM nextval('reuse.alterations'); END $$;

CREATE FUNCTION reuse.bytes() RETURNS bigint LANGUAGE sql AS $$
    SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relnamespace = 'carteiro'::regnamespace
$$;

DO $do$
DECLARE
    made record;
    number record;
    has_rows boolean;
    steps text := format(
        $$
        IF (SELECT is_called FROM reuse.alterations)
            OR reuse.bytes() > 4 * %s  -- dead rows of earlier tests, which later ones read past
            OR EXISTS (
                SELECT FROM pg_db_role_setting AS s JOIN pg_database AS d ON d.oid = s.setdatabase
                WHERE d.datname = current_database()
            )
            OR EXISTS (
                SELECT FROM pg_statistic AS s JOIN pg_class AS c ON c.oid = s.starelid
                WHERE c.relnamespace = 'carteiro'::regnamespace
            )
        THEN
            RETURN false;
        END IF;
        $$,
        reuse.bytes()
    );
BEGIN
    FOR made IN SELECT relname AS name, relkind AS kind FROM pg_class
        WHERE relnamespace = 'carteiro'::regnamespace AND relkind IN ('r', 'S')
    LOOP
        IF made.kind = 'S' THEN
            EXECUTE format('SELECT last_value AS last, is_called FROM carteiro.%I', made.name) INTO number;
            steps := steps || format(
                'PERFORM setval(''carteiro.%I'', %s, %L);', made.name, number.last, number.is_called
            );
            CONTINUE;
        END IF;
        steps := steps || format('DELETE FROM carteiro.%I;', made.name);
        EXECUTE format('SELECT EXISTS (SELECT FROM carteiro.%I)', made.name) INTO has_rows;
        IF has_rows THEN
            EXECUTE format('CREATE TABLE reuse.%I AS TABLE carteiro.%I', made.name, made.name);
            steps := steps || format('INSERT INTO carteiro.%I TABLE reuse.%I;', made.name, made.name);
        END IF;
    END LOOP;
    -- A replica's session: no trigger and no foreign key has anything to do.
    EXECUTE format(
        'CREATE FUNCTION reuse.is_emptied() RETURNS boolean LANGUAGE plpgsql
            SET session_replication_role = replica AS %L',
        'BEGIN ' || steps || ' RETURN true; END'
    );
END
$do$;

CREATE EVENT TRIGGER notice ON ddl_command_end EXECUTE FUNCTION reuse.notice();
"""


async def _prepare(url: str) -> None:
    await migrate(url)
    # An owner may have fewer rights than an event trigger needs.
    async with await psycopg.AsyncConnection.connect(url, user=SUPERUSER) as connection:
        await connection.execute(_PREPARE)


class ReusedDatabases:
    """Databases of a server; each has a connection that empties it, and that is kept with its plans."""

    def __init__(self, server: PostgresServer, owner: str = SUPERUSER) -> None:
        self._server = server
        self._owner = owner
        self._unused: list[str] = []
        self._kept: dict[str, psycopg.Connection[tuple[Any, ...]]] = {}

    def take(self) -> str:
        """The name of a database as a migration leaves it."""
        if self._unused:
            return self._unused.pop()
        return self._server.new_database(_prepare, owner=self._owner)

    def put_back(self, name: str) -> None:
        """Disconnect everybody; empty the database for the next one, or drop it."""
        try:
            is_emptied = self._is_emptied(name)
        except psycopg.OperationalError:  # the test has ended this connection, too
            self._kept.pop(name).close()
            is_emptied = self._is_emptied(name)
        if is_emptied:
            self._unused.append(name)
        else:
            self._kept.pop(name).close()
            self._server.drop_database(name)

    def close(self) -> None:
        """Disconnect; the databases are left to the end of their server."""
        for each in self._kept.values():
            each.close()

    def _is_emptied(self, name: str) -> bool:
        kept = self._connection(name)
        self._server.disconnect(name, but=kept.info.backend_pid)
        return kept.execute("SELECT reuse.is_emptied()").fetchall() == [(True,)]

    def _connection(self, name: str) -> "psycopg.Connection[tuple[Any, ...]]":
        if name not in self._kept or self._kept[name].closed:
            # A lock that outlives its connection, of a prepared transaction, is an error of the test.
            options = "-c lock_timeout=10s"
            self._kept[name] = psycopg.connect(
                self._server.url(name), autocommit=True, options=options
            )
        return self._kept[name]

"""The schema and its migrations: each file once, in order, however many processes start at once."""

from contextlib import suppress
from typing import Any

import asyncpg

from carteiro.errors import StoreError
from carteiro.model import Fairness
from carteiro.stores.migrations import Migration, migrations_of, pending
from carteiro.stores.postgres.database import FAILURES, address_read, described, sql, translated
from carteiro.stores.tenant_columns import fairness_of

PACKAGE = "carteiro.stores.postgres"
_PATIENCE_S = 5.0
_OLDEST_SERVER = 150_000
_SCHEMA = (
    "CREATE SCHEMA IF NOT EXISTS carteiro",
    """
    CREATE TABLE IF NOT EXISTS carteiro.migrations (
        number integer PRIMARY KEY,
        name text NOT NULL,
        digest integer NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
)
# By way of JSON: the table of an unreleased version may have no such column.
_NEWEST = """
SELECT number, to_jsonb(m) ->> 'digest' AS digest FROM carteiro.migrations AS m ORDER BY number DESC LIMIT 1
"""


async def migrate(url: str) -> int:
    """Bring the schema of a database up to date; return its version."""
    try:
        with address_read(described(url)):
            connection = await asyncpg.connect(url, statement_cache_size=0)
        try:
            return await _migrate(connection, described(url))
        finally:
            await connection.close()
    except FAILURES as error:
        raise translated(error, described(url)) from error


async def found_version(url: str) -> int:
    """The version of the schema in a database; 0 if there is none."""
    version, _ = await found_schema(url)
    return version


async def found_schema(url: str) -> tuple[int, int | None]:
    """The version of the schema in a database, and the digest of the migrations that made it."""
    try:
        with address_read(described(url)):
            connection = await asyncpg.connect(url, statement_cache_size=0)
        try:
            return await _found(connection)
        finally:
            await connection.close()
    except FAILURES as error:
        raise translated(error, described(url)) from error


async def found_fairness(url: str) -> Fairness | None:
    """The fairness settings that were changed at run time, if they were; the database stays as it is."""
    try:
        with address_read(described(url)):
            connection = await asyncpg.connect(url, timeout=_PATIENCE_S, statement_cache_size=0)
        try:
            is_there, _ = await _found(connection)
            return fairness_of(
                await connection.fetchval(sql("override_get"), "fairness") if is_there else None
            )
        finally:
            await connection.close()
    except FAILURES as error:
        raise translated(error, described(url)) from error


def newest_version() -> int:
    """The version of the schema that this program writes."""
    return migrations_of(PACKAGE)[-1].number


async def _migrate(connection: Any, name: str) -> int:  # noqa: ANN401 - asyncpg's connection
    server = int(await connection.fetchval("SHOW server_version_num"))
    if server < _OLDEST_SERVER:
        raise StoreError(f"{name} is PostgreSQL {server // 10_000}: version 15 or newer is needed")
    if not await _pending(connection, name):
        return newest_version()
    await _make_schema(connection)
    async with connection.transaction():
        # An owner named like the schema has it first on its search path: a bare name must fail.
        await connection.execute("SET LOCAL search_path = pg_catalog")
        # An advisory lock could be taken by any role that connects.
        await connection.execute("LOCK TABLE carteiro.migrations IN SHARE ROW EXCLUSIVE MODE")
        for each in await _pending(connection, name):  # again, now that nobody else migrates
            await connection.execute(each.script)
            insert = "INSERT INTO carteiro.migrations (number, name, digest) VALUES ($1, $2, $3)"
            await connection.execute(insert, each.number, each.name, each.digest)
    return newest_version()


async def _make_schema(connection: Any) -> None:  # noqa: ANN401 - asyncpg's connection
    """Make schema and table of migrations; another process that does the same at this moment has made them."""
    for statement in _SCHEMA:
        with suppress(
            asyncpg.UniqueViolationError, asyncpg.DuplicateSchemaError, asyncpg.DuplicateTableError
        ):
            await connection.execute(statement)


async def _pending(connection: Any, name: str) -> list[Migration]:  # noqa: ANN401 - asyncpg's connection
    version, digest = await _found(connection)
    return pending(PACKAGE, version, digest, name)


async def _found(connection: Any) -> tuple[int, int | None]:  # noqa: ANN401 - asyncpg's connection
    if await connection.fetchval("SELECT to_regclass('carteiro.migrations')") is None:
        return 0, None
    row = await connection.fetchrow(_NEWEST)
    return (0, None) if row is None else (row["number"], row["digest"] and int(row["digest"]))

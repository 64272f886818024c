"""The schema and its migrations: each file once, in order, however many processes start at once."""

import re
from collections.abc import Iterator
from contextlib import suppress
from importlib import resources
from typing import Any

import asyncpg

from carteiro.errors import SchemaMismatch, StoreError
from carteiro.stores.postgres.database import FAILURES, described, translated

_PACKAGE = "carteiro.stores.postgres"
_MIGRATION_NAME = re.compile(r"(\d{4})_(pre|post)_\w+\.sql")
_OLDEST_SERVER = 150_000
_SCHEMA = (
    "CREATE SCHEMA IF NOT EXISTS carteiro",
    """
    CREATE TABLE IF NOT EXISTS carteiro.migrations (
        number integer PRIMARY KEY,
        name text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
)


async def migrate(url: str) -> int:
    """Bring the schema of a database up to date; return its version."""
    try:
        connection = await asyncpg.connect(url, statement_cache_size=0)
        try:
            return await _migrate(connection, described(url))
        finally:
            await connection.close()
    except FAILURES as error:
        raise translated(error, described(url)) from error


async def found_version(url: str) -> int:
    """The version of the schema in a database; 0 if there is none."""
    try:
        connection = await asyncpg.connect(url, statement_cache_size=0)
        try:
            return await _found(connection)
        finally:
            await connection.close()
    except FAILURES as error:
        raise translated(error, described(url)) from error


def newest_version() -> int:
    """The version of the schema that this program writes."""
    return max(number for number, _, _ in _migrations())


async def _migrate(connection: Any, name: str) -> int:  # noqa: ANN401 - asyncpg's connection
    server = int(await connection.fetchval("SHOW server_version_num"))
    if server < _OLDEST_SERVER:
        raise StoreError(f"{name} is PostgreSQL {server // 10_000}: version 15 or newer is needed")
    if await _found(connection) == newest_version():
        return newest_version()
    await _make_schema(connection)
    async with connection.transaction():
        # An owner named like the schema has it first on its search path: a bare name must fail.
        await connection.execute("SET LOCAL search_path = pg_catalog")
        # An advisory lock could be taken by any role that connects.
        await connection.execute("LOCK TABLE carteiro.migrations IN SHARE ROW EXCLUSIVE MODE")
        found = await _found(connection)  # again, now that nobody else migrates
        if found > newest_version():
            text = (
                f"{name} was written by a newer Carteiro (schema {found}, this one knows "
                f"{newest_version()}): upgrade this program or name another database"
            )
            raise SchemaMismatch(text)
        for number, title, script in sorted(_migrations()):
            if number > found:
                await connection.execute(script)
                insert = "INSERT INTO carteiro.migrations (number, name) VALUES ($1, $2)"
                await connection.execute(insert, number, title)
    return newest_version()


async def _make_schema(connection: Any) -> None:  # noqa: ANN401 - asyncpg's connection
    """Make schema and table of migrations; another process that does the same at this moment has made them."""
    for statement in _SCHEMA:
        with suppress(
            asyncpg.UniqueViolationError, asyncpg.DuplicateSchemaError, asyncpg.DuplicateTableError
        ):
            await connection.execute(statement)


async def _found(connection: Any) -> int:  # noqa: ANN401 - asyncpg's connection
    if await connection.fetchval("SELECT to_regclass('carteiro.migrations')") is None:
        return 0
    return int(
        await connection.fetchval("SELECT coalesce(max(number), 0) FROM carteiro.migrations")
    )


def _migrations() -> Iterator[tuple[int, str, str]]:
    for file in (resources.files(_PACKAGE) / "migrations").iterdir():
        if match := _MIGRATION_NAME.fullmatch(file.name):
            yield int(match.group(1)), file.name, file.read_text(encoding="utf-8")

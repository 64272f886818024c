"""The schema: migrations, each once and in order; functions and views, created again when their texts change.

Any number of processes may start at once: one does the work, the others find it done.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import asyncpg

from carteiro.errors import StoreError
from carteiro.model import Fairness, value
from carteiro.stores.migrations import Migration, digest_of, migrations_of, pending
from carteiro.stores.postgres.database import FAILURES, address_read, described, sql, translated
from carteiro.stores.statements import expanded
from carteiro.stores.tenant_columns import fairness_of

PACKAGE = "carteiro.stores.postgres"
FUNCTIONS = resources.files(PACKAGE) / "functions"
_TOPICS = ("common", "leases", "ring", "claim", "ledger", "views", "table_queue")
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
# Through JSON: the table of an unreleased version may have no such column.
_APPLIED = "SELECT number, (to_jsonb(m) ->> 'digest')::integer AS digest FROM carteiro.migrations AS m ORDER BY number"
# Objects belong to the owner of the schema, also when a superuser or a member of that role makes them.
_AS_OWNER = """
SELECT set_config('role', pg_get_userbyid(n.nspowner), true) FROM pg_namespace AS n WHERE n.nspname = 'carteiro'
"""
_APPLY = """
INSERT INTO carteiro.migrations (number, name, digest) VALUES ($1, $2, $3)
ON CONFLICT (number) DO UPDATE SET digest = excluded.digest, applied_at = excluded.applied_at
"""


@value
class Applied:
    """State of a database: the newest migration and its digest, and the digest of the functions."""

    version: int = 0
    digest: int | None = None
    functions: int | None = None


async def migrate(url: str, functions: Traversable = FUNCTIONS) -> int:
    """Bring the schema of a database up to date, with the functions of this folder; return its version."""
    async with _connected(url) as connection:
        return await _migrate(connection, described(url), _script(functions))


async def found_version(url: str) -> int:
    """The version of the schema in a database; 0 if there is none."""
    return (await found_schema(url)).version


async def found_schema(url: str) -> Applied:
    """Migrations and functions of a database."""
    async with _connected(url) as connection:
        return await _found(connection)


async def found_fairness(url: str) -> Fairness | None:
    """The fairness settings that were changed at run time, if they were; the database stays as it is."""
    async with _connected(url, timeout_s=_PATIENCE_S) as connection:
        is_there = (await _found(connection)).version
        return fairness_of(
            await connection.fetchval(sql("override_get"), "fairness") if is_there else None
        )


@asynccontextmanager
async def _connected(url: str, timeout_s: float = 60) -> AsyncIterator[Any]:
    name = described(url)
    try:
        with address_read(name):
            connection = await asyncpg.connect(url, timeout=timeout_s, statement_cache_size=0)
        try:
            yield connection
        finally:
            await connection.close()
    except FAILURES as error:
        raise translated(error, name) from error


def newest_version() -> int:
    """The version of the schema that this program writes."""
    return migrations_of(PACKAGE)[-1].number


def functions_digest() -> int:
    """The digest of the functions that this program calls."""
    return digest_of(_script(FUNCTIONS))


def _script(folder: Traversable) -> str:
    return expanded("\n".join((folder / f"{each}.sql").read_text("utf-8") for each in _TOPICS))


async def _migrate(connection: Any, name: str, functions: str) -> int:  # noqa: ANN401 - asyncpg's connection
    server = int(await connection.fetchval("SHOW server_version_num"))
    if server < _OLDEST_SERVER:
        raise StoreError(f"{name} is PostgreSQL {server // 10_000}: version 15 or newer is needed")
    digest = digest_of(functions)
    found = await _found(connection)
    if not _pending(found, name) and found.functions == digest:
        return newest_version()
    for statement in _SCHEMA:
        with suppress(*_MADE_BY_ANOTHER):  # another process does so at this moment
            await connection.execute(statement)
    async with connection.transaction():
        # An owner named like the schema has it first on its search path: a bare name must fail.
        await connection.execute(
            "SET LOCAL search_path = pg_catalog; SET LOCAL lock_timeout = '1min'"
        )
        await connection.execute(_AS_OWNER)
        # An advisory lock could be taken by any role that connects.
        await connection.execute("LOCK TABLE carteiro.migrations IN SHARE ROW EXCLUSIVE MODE")
        found = await _found(connection)  # check again, now that no other process migrates
        for each in _pending(found, name):
            await connection.execute(each.script)
            await connection.execute(_APPLY, each.number, each.name, each.digest)
        if found.functions != digest:
            rights = found.functions and await connection.fetchval("SELECT carteiro.take_down()")
            await connection.execute(functions)
            await connection.execute("SELECT carteiro.put_up($1)", rights)
            await connection.execute(_APPLY, 0, "functions", digest)
    return newest_version()


_MADE_BY_ANOTHER = (
    asyncpg.UniqueViolationError,
    asyncpg.DuplicateSchemaError,
    asyncpg.DuplicateTableError,
    asyncpg.DuplicateObjectError,  # the row type of a table
)


def _pending(found: Applied, name: str) -> list[Migration]:
    return pending(PACKAGE, found.version, found.digest, name)


async def _found(connection: Any) -> Applied:  # noqa: ANN401 - asyncpg's connection
    if await connection.fetchval("SELECT to_regclass('carteiro.migrations')") is None:
        return Applied()
    digests = {row["number"]: row["digest"] for row in await connection.fetch(_APPLIED)}
    newest = max(digests, default=0)
    return Applied(newest, digests.get(newest) if newest else None, digests.get(0))

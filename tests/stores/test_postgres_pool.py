"""The pool: a connection is given back at once, whatever has become of its statement."""

import asyncio

import pytest

from carteiro.stores.postgres.database import Database
from carteiro.stores.postgres.options import PostgresOptions

pytestmark = pytest.mark.servers

_PATIENCE_S = 20.0  # far more than anything here takes
_RUNNING = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(600)'"


@pytest.mark.parametrize("cancels", [1, 2])
async def test_only_connection_can_be_borrowed_after_its_statement_was_cancelled(
    url: str, cancels: int
) -> None:
    """A second cancel comes while the pool waits for the server to end the statement."""
    db, looker = [Database(url, PostgresOptions(connections=1)) for _ in range(2)]
    await db.open()
    await looker.open()

    async def sleep() -> None:
        async with db.transaction() as session:
            await session.connection.fetch("SELECT pg_sleep(600)")

    async with asyncio.timeout(_PATIENCE_S), looker.outside_transactions() as other:
        sleeping = asyncio.create_task(sleep())
        while not await other.connection.fetchval(_RUNNING):
            await asyncio.sleep(0.01)
        for _ in range(cancels):
            sleeping.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await sleeping
        async with db.outside_transactions() as session:
            found = await session.connection.fetchval("SELECT 1")

    assert found == 1
    await db.close()
    await looker.close()

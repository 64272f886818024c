"""Opens all ports of one PostgreSQL database together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from carteiro.ports import Backend
from carteiro.ports.ledger import LedgerHalf
from carteiro.stores.postgres.database import Database
from carteiro.stores.postgres.joining import PostgresJoining
from carteiro.stores.postgres.ledger import PostgresEntries
from carteiro.stores.postgres.migrating import migrate
from carteiro.stores.postgres.options import PostgresOptions
from carteiro.stores.postgres.paired_ledger import PostgresLedger
from carteiro.stores.postgres.store import PostgresStore
from carteiro.stores.postgres.table_queue import PostgresTableQueue
from carteiro.stores.postgres.upkeep import PostgresUpkeep
from carteiro.stores.postgres.wake import PostgresWake
from carteiro.stores.sql.setup import set_up


@asynccontextmanager
async def open_postgres(
    url: str,
    options: PostgresOptions = PostgresOptions(),  # noqa: B008 - a value, never changed
) -> AsyncIterator[Backend]:
    """Connect and bring the schema up to date; closed when the block ends."""
    async with _opened(url, options) as half:
        yield half.backend


@asynccontextmanager
async def open_postgres_ledger(
    url: str,
    options: PostgresOptions = PostgresOptions(),  # noqa: B008 - a value, never changed
) -> AsyncIterator[LedgerHalf]:
    """As `open_postgres`, but only the ledger: a separate queue has the jobs."""
    async with _opened(url, replace(options, has_queue=False)) as half:
        yield half


@asynccontextmanager
async def _opened(url: str, options: PostgresOptions) -> AsyncIterator[LedgerHalf]:
    await migrate(url)
    db = Database(url, options)
    await db.open()
    wake = PostgresWake(url, db)
    entries = PostgresEntries(db, options)
    store = PostgresStore(db, entries, wake, options)
    try:
        yield await set_up(
            db,
            entries,
            PostgresLedger(db, entries, store),
            store=store,
            upkeep=PostgresUpkeep(db, entries, wake),
            wake=wake,
            options=options,
            joining=PostgresJoining(db),
            table_queue=PostgresTableQueue(db, entries, wake, options),
        )
    finally:
        await wake.close()
        await db.close()

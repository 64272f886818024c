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
from carteiro.stores.sql.dead_letters import SqlDeadLetters
from carteiro.stores.sql.erasing import SqlErasing
from carteiro.stores.sql.inbox import SqlInbox
from carteiro.stores.sql.keeping import keep_jobs
from carteiro.stores.sql.keys import SqlKeys
from carteiro.stores.sql.marks import SqlMarks
from carteiro.stores.sql.paired_ledger import SqlLedgerDesk
from carteiro.stores.sql.rates import SqlRates
from carteiro.stores.sql.reading import SqlReading
from carteiro.stores.sql.recipients import SqlRecipients
from carteiro.stores.sql.suppressions import SqlSuppressions
from carteiro.stores.sql.templates import SqlTemplates
from carteiro.stores.sql.tenants import SqlTenants
from carteiro.stores.sql.tracking import SqlTracking


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
    erasing = SqlErasing(db, store, has_queue=options.has_queue)
    try:
        await keep_jobs(db, here=options.has_queue)
        backend = Backend(
            store=store,
            tenants=SqlTenants(db, wake, erasing, options.fairness),
            keys=SqlKeys(db),
            templates=SqlTemplates(db),
            recipients=SqlRecipients(db, erasing),
            suppressions=SqlSuppressions(db),
            tracking=SqlTracking(db, entries, wake),
            rates=SqlRates(db),
            dead_letters=SqlDeadLetters(db, wake, entries, has_queue=options.has_queue),
            reading=SqlReading(db, has_queue=options.has_queue),
            upkeep=PostgresUpkeep(db, entries, wake),
            inbox=SqlInbox(db),
            marks=SqlMarks(db),
            wake=wake,
            joining=PostgresJoining(db),
            table_queue=PostgresTableQueue(db, entries, wake, options),
        )
        ledger = PostgresLedger(db, entries, store)
        yield LedgerHalf(ledger, SqlLedgerDesk(db, erasing), backend)
    finally:
        await wake.close()
        await db.close()

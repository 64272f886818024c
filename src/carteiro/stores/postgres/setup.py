"""Opens all ports of one PostgreSQL database together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from carteiro.ports import Backend
from carteiro.ports.ledger import LedgerHalf
from carteiro.stores.postgres.database import Database
from carteiro.stores.postgres.dead_letters import PostgresDeadLetters
from carteiro.stores.postgres.half import PostgresLedger, PostgresLedgerDesk
from carteiro.stores.postgres.inbox import PostgresInbox
from carteiro.stores.postgres.joining import PostgresJoining
from carteiro.stores.postgres.keeping import keep_jobs
from carteiro.stores.postgres.keys import PostgresKeys
from carteiro.stores.postgres.marks import PostgresMarks
from carteiro.stores.postgres.migrating import migrate
from carteiro.stores.postgres.options import PostgresOptions
from carteiro.stores.postgres.rates import PostgresRates
from carteiro.stores.postgres.reading import PostgresReading
from carteiro.stores.postgres.recipients import PostgresRecipients
from carteiro.stores.postgres.store import PostgresStore
from carteiro.stores.postgres.suppressions import PostgresSuppressions
from carteiro.stores.postgres.table_queue import PostgresTableQueue
from carteiro.stores.postgres.templates import PostgresTemplates
from carteiro.stores.postgres.tenants import PostgresTenants
from carteiro.stores.postgres.tracking import PostgresTracking
from carteiro.stores.postgres.upkeep import PostgresUpkeep
from carteiro.stores.postgres.wake import PostgresWake


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
    """As `open_postgres`, the ledger alone: jobs are kept elsewhere."""
    async with _opened(url, replace(options, has_queue=False)) as half:
        yield half


@asynccontextmanager
async def _opened(url: str, options: PostgresOptions) -> AsyncIterator[LedgerHalf]:
    await migrate(url)
    db = Database(url, options)
    await db.open()
    wake = PostgresWake(url, db)
    tenants, recipients = PostgresTenants(db, wake, options), PostgresRecipients(db, wake)
    try:
        await keep_jobs(db, here=options.has_queue)
        backend = Backend(
            store=PostgresStore(db, wake, options),
            tenants=tenants,
            keys=PostgresKeys(db),
            templates=PostgresTemplates(db),
            recipients=recipients,
            suppressions=PostgresSuppressions(db),
            tracking=PostgresTracking(db, wake),
            rates=PostgresRates(db),
            dead_letters=PostgresDeadLetters(db, wake, options),
            reading=PostgresReading(db, options),
            upkeep=PostgresUpkeep(db, wake, options),
            inbox=PostgresInbox(db),
            marks=PostgresMarks(db),
            wake=wake,
            joining=PostgresJoining(db),
            table_queue=PostgresTableQueue(db, wake, options),
        )
        desk = PostgresLedgerDesk(db, tenants, recipients)
        yield LedgerHalf(PostgresLedger(db, options), desk, backend)
    finally:
        await wake.close()
        await db.close()

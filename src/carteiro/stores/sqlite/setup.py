"""Opens all ports of one SQLite file together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from carteiro.ports import Backend
from carteiro.ports.ledger import LedgerHalf
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
from carteiro.stores.sqlite.database import SqliteDatabase
from carteiro.stores.sqlite.ledger import SqliteEntries
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.paired_ledger import SqliteLedger
from carteiro.stores.sqlite.reader import Reader
from carteiro.stores.sqlite.store import SqliteStore
from carteiro.stores.sqlite.upkeep import SqliteUpkeep
from carteiro.stores.sqlite.wake import SqliteWake
from carteiro.stores.sqlite.writer import Writer


@asynccontextmanager
async def open_sqlite(
    path: str | Path,
    options: SqliteOptions = SqliteOptions(),  # noqa: B008 - a value, never changed
) -> AsyncIterator[Backend]:
    """Open or create the file; closed when the block ends, after all queued writes."""
    async with _opened(_absolute(path), options) as half:
        yield half.backend


@asynccontextmanager
async def open_sqlite_ledger(
    path: str | Path,
    options: SqliteOptions = SqliteOptions(),  # noqa: B008 - a value, never changed
) -> AsyncIterator[LedgerHalf]:
    """As `open_sqlite`, but only the ledger: a separate queue has the jobs."""
    async with _opened(_absolute(path), replace(options, has_queue=False)) as half:
        yield half


@asynccontextmanager
async def _opened(place: Path, options: SqliteOptions) -> AsyncIterator[LedgerHalf]:
    clock, busy_timeout_ms, durable = options.clock, options.busy_timeout_ms, options.durable
    has_queue = options.has_queue
    wake = SqliteWake()
    writer = Writer(
        place,
        busy_timeout_ms=busy_timeout_ms,
        durable=durable,
        has_work=wake.has_work,
        changed_elsewhere=wake.ring,
    )
    await writer.start()
    wake.attach(writer)
    reader = Reader(place, busy_timeout_ms=busy_timeout_ms, durable=durable)
    db = SqliteDatabase(writer, reader, clock)
    entries = SqliteEntries(writer, options)
    store = SqliteStore(writer, entries, wake, place, options)
    erasing = SqlErasing(db, store, has_queue=has_queue)
    try:
        await keep_jobs(db, here=has_queue)
        backend = Backend(
            store=store,
            tenants=SqlTenants(db, wake, erasing, options.fairness),
            keys=SqlKeys(db),
            templates=SqlTemplates(db),
            recipients=SqlRecipients(db, erasing),
            suppressions=SqlSuppressions(db),
            tracking=SqlTracking(db, entries, wake),
            rates=SqlRates(db),
            dead_letters=SqlDeadLetters(db, wake, entries, has_queue=has_queue),
            reading=SqlReading(db, has_queue=has_queue),
            upkeep=SqliteUpkeep(db, entries, wake, writer, place, options),
            inbox=SqlInbox(db),
            marks=SqlMarks(db),
            wake=wake,
        )
        ledger = SqliteLedger(db, entries, store)
        yield LedgerHalf(ledger, SqlLedgerDesk(db, erasing), backend)
    finally:
        await writer.stop()
        reader.close()


def _absolute(path: str | Path) -> Path:
    return Path(path).absolute()  # a later change of the working folder must not move the store

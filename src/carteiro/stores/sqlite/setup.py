"""Opens all ports of one SQLite file together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from carteiro.ports import Backend
from carteiro.ports.ledger import LedgerHalf
from carteiro.stores.sqlite.dead_letters import SqliteDeadLetters
from carteiro.stores.sqlite.half import SqliteLedger, SqliteLedgerDesk
from carteiro.stores.sqlite.inbox import SqliteInbox
from carteiro.stores.sqlite.keeping import changes_hands, keep_jobs
from carteiro.stores.sqlite.keys import SqliteKeys
from carteiro.stores.sqlite.marks import SqliteMarks
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.rates import SqliteRates
from carteiro.stores.sqlite.reading import Reader, SqliteReading
from carteiro.stores.sqlite.recipients import SqliteRecipients
from carteiro.stores.sqlite.store import SqliteStore
from carteiro.stores.sqlite.suppressions import SqliteSuppressions
from carteiro.stores.sqlite.templates import SqliteTemplates
from carteiro.stores.sqlite.tenants import SqliteTenants
from carteiro.stores.sqlite.tracking import SqliteTracking
from carteiro.stores.sqlite.upkeep import SqliteUpkeep
from carteiro.stores.sqlite.wake import SqliteWake
from carteiro.stores.sqlite.writer import Writer


@asynccontextmanager
async def open_sqlite(
    path: str | Path,
    options: SqliteOptions = SqliteOptions(),  # noqa: B008 - a value, never changed
) -> AsyncIterator[Backend]:
    """Open or create the file; closed when the block ends, after what was asked is written."""
    async with _opened(_absolute(path), options) as half:
        yield half.backend


@asynccontextmanager
async def open_sqlite_ledger(
    path: str | Path,
    options: SqliteOptions = SqliteOptions(),  # noqa: B008 - a value, never changed
) -> AsyncIterator[LedgerHalf]:
    """As `open_sqlite`, the ledger alone: jobs are kept elsewhere."""
    async with _opened(_absolute(path), replace(options, has_queue=False)) as half:
        yield half


@asynccontextmanager
async def _opened(place: Path, options: SqliteOptions) -> AsyncIterator[LedgerHalf]:
    clock, busy_timeout_ms, durable = options.clock, options.busy_timeout_ms, options.durable
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
    store = SqliteStore(writer, wake, place, options)
    tenants = SqliteTenants(writer, reader, wake, options)
    recipients = SqliteRecipients(writer, reader, wake, options)
    try:
        await _keep_jobs(writer, reader, options)
        backend = Backend(
            store=store,
            tenants=tenants,
            keys=SqliteKeys(writer, reader, clock),
            templates=SqliteTemplates(writer, reader, clock),
            recipients=recipients,
            suppressions=SqliteSuppressions(writer, reader, clock),
            tracking=SqliteTracking(writer, wake, options),
            rates=SqliteRates(writer, reader, clock),
            dead_letters=SqliteDeadLetters(writer, reader, wake, options),
            reading=SqliteReading(reader, options),
            upkeep=SqliteUpkeep(writer, reader, wake, place, options),
            inbox=SqliteInbox(writer, reader, clock),
            marks=SqliteMarks(writer, reader),
            wake=wake,
        )
        ledger = SqliteLedger(store, writer, reader, options)
        desk = SqliteLedgerDesk(reader, tenants, recipients, options)
        yield LedgerHalf(ledger, desk, backend)
    finally:
        await writer.stop()
        reader.close()


async def _keep_jobs(writer: Writer, reader: Reader, options: SqliteOptions) -> None:
    here = options.has_queue
    if await reader.ask(lambda db: changes_hands(db, here=here)):
        await writer.do(lambda db: keep_jobs(db, options.clock(), here=here))


def _absolute(path: str | Path) -> Path:
    return Path(path).absolute()  # a later change of the working folder must not move the store

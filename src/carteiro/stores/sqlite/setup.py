"""Opens all ports of one SQLite file together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from carteiro.ports import Backend
from carteiro.ports.ledger import LedgerHalf
from carteiro.stores.sql.setup import set_up
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
    busy_timeout_ms, durable = options.busy_timeout_ms, options.durable
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
    db = SqliteDatabase(writer, reader, options.clock)
    entries = SqliteEntries(writer, options)
    store = SqliteStore(writer, entries, wake, place, options)
    try:
        yield await set_up(
            db,
            entries,
            SqliteLedger(db, entries, store),
            store=store,
            upkeep=SqliteUpkeep(db, entries, wake, writer, place, options),
            wake=wake,
            options=options,
        )
    finally:
        await writer.stop()
        reader.close()


def _absolute(path: str | Path) -> Path:
    return Path(path).absolute()  # a later change of the working folder must not move the store

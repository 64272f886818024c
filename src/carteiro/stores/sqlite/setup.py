"""Opens all ports of one SQLite file together."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from carteiro.model import Fairness
from carteiro.ports import Backend
from carteiro.stores.sqlite.dead_letters import SqliteDeadLetters
from carteiro.stores.sqlite.inbox import SqliteInbox
from carteiro.stores.sqlite.keys import SqliteKeys
from carteiro.stores.sqlite.options import SqliteOptions, wall_clock_ms
from carteiro.stores.sqlite.reading import Reader, SqliteReading
from carteiro.stores.sqlite.recipients import SqliteRecipients
from carteiro.stores.sqlite.store import SqliteStore
from carteiro.stores.sqlite.templates import SqliteTemplates
from carteiro.stores.sqlite.tenants import SqliteTenants
from carteiro.stores.sqlite.upkeep import SqliteUpkeep
from carteiro.stores.sqlite.wake import SqliteWake
from carteiro.stores.sqlite.writer import Writer


@asynccontextmanager
async def open_sqlite(  # noqa: PLR0913 - each is a setting of its own, by its name
    path: str | Path,
    *,
    clock: Callable[[], int] = wall_clock_ms,
    fairness: Fairness = Fairness(),  # noqa: B008 - a value, never changed
    dead_letter_ttl: timedelta = timedelta(days=7),
    min_free_bytes: int = 0,
    busy_timeout_ms: int = 5000,
) -> AsyncIterator[Backend]:
    """Open or create the file; closed when the block ends, after what was asked is written."""
    options = SqliteOptions(clock, fairness, dead_letter_ttl, min_free_bytes, busy_timeout_ms)
    place = _absolute(path)
    wake = SqliteWake()
    writer = Writer(
        place,
        busy_timeout_ms=busy_timeout_ms,
        has_work=wake.has_work,
        changed_elsewhere=wake.ring,
    )
    await writer.start()
    wake.attach(writer)
    reader = Reader(place, busy_timeout_ms=busy_timeout_ms)
    try:
        yield Backend(
            store=SqliteStore(writer, wake, place, options),
            tenants=SqliteTenants(writer, reader, wake, options),
            keys=SqliteKeys(writer, reader, clock),
            templates=SqliteTemplates(writer, reader, clock),
            recipients=SqliteRecipients(writer, reader, wake, clock),
            dead_letters=SqliteDeadLetters(writer, reader, wake, clock),
            reading=SqliteReading(reader, clock),
            upkeep=SqliteUpkeep(writer, wake, place, options),
            inbox=SqliteInbox(writer, reader, clock),
            wake=wake,
        )
    finally:
        await writer.stop()
        reader.close()


def _absolute(path: str | Path) -> Path:
    return Path(path).absolute()  # a later change of the working folder must not move the store

"""A SQLite store for tests: the schema is created once a process, and nothing waits for the disk."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from carteiro.ports import Backend
from carteiro.stores.sqlite import SqliteOptions, open_sqlite
from carteiro.stores.sqlite.opening import connect, migrate
from carteiro.stores.sqlite.options import wall_clock_ms


@asynccontextmanager
async def quick_backend(*, clock: Callable[[], int] = wall_clock_ms) -> AsyncIterator[Backend]:
    """All ports of a new and empty store."""
    with TemporaryDirectory() as folder:
        options = SqliteOptions(clock=clock, durable=False)
        async with open_sqlite(sqlite_file(Path(folder)), options) as backend:
            yield backend


def sqlite_file(folder: Path) -> Path:
    """The file of the store in this folder; a new one is a copy of an empty store."""
    file = folder / "carteiro.db"
    if not file.exists():
        file.write_bytes(_empty_store())
    return file


@cache
def _empty_store() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "empty.db"
        with closing(connect(file, busy_timeout_ms=0, durable=False)) as connection:
            migrate(connection, file)
        return file.read_bytes()

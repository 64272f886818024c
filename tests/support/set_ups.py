"""A store set-up under test: its opening, and its abilities beyond the ports."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from hypothesis import settings
from redis import Redis

from carteiro.maintenance.relay import Relay
from carteiro.model import Fairness
from carteiro.ports import Backend
from carteiro.ports.ledger import LedgerHalf
from carteiro.ports.queue import QueueHalf
from carteiro.stores.paired_ports import open_paired
from carteiro.stores.postgres import (
    PostgresOptions,
    open_postgres,
    open_postgres_ledger,
)
from carteiro.stores.redis import RedisOptions, open_redis
from carteiro.stores.sqlite import SqliteOptions, open_sqlite, open_sqlite_ledger
from support.clock import StoreClock
from support.model import open_model
from support.quick_store import sqlite_file
from support.shared_servers import redis_databases, reused_databases, shared_postgres, shared_redis

_databases: dict[Path, str] = {}  # in PostgreSQL, by the folder that they belong to
_numbers: dict[Path, int] = {}  # of databases in Redis, by the folder that they belong to
_PATIENCE = timedelta(seconds=20)  # a busy machine is not a failed server
DEAD_LETTER_TTL = timedelta(days=7)

# Opening a set-up costs milliseconds: enough examples to find bugs, few enough to run often.
PROPERTY = settings(max_examples=20, deadline=None)

Opened: TypeAlias = AbstractAsyncContextManager[Backend]


@dataclass(frozen=True)
class SetUp:
    """A store that contract tests run on."""

    name: str
    opens: Callable[[Path, StoreClock, Fairness], Opened]
    in_files: bool = False  # True if all of it is in the folder: it can be copied, and shrinks
    by_sql: bool = False  # applications reach its table queue by SQL
    is_pair: bool = False  # of a ledger and a queue
    on_servers: bool = False
    drops: Callable[[Path], None] = lambda _: None  # removes what is not in the folder

    @asynccontextmanager
    async def opened(
        self, clock: StoreClock, *, fairness: Fairness | None = None
    ) -> AsyncIterator[Backend]:
        """A new and empty store."""
        with TemporaryDirectory() as folder:
            try:
                async with self.opens(Path(folder), clock, fairness or Fairness()) as backend:
                    yield backend
            finally:
                self.drops(Path(folder))


@dataclass(frozen=True)
class Place:
    """The location of a set-up's store: it can be opened again, and twice at once."""

    set_up: SetUp
    folder: Path
    clock: StoreClock

    def opened(self) -> Opened:
        """The store at this location."""
        return self.set_up.opens(self.folder, self.clock, Fairness())


def on_model(_folder: Path, clock: StoreClock, fairness: Fairness) -> Opened:
    """The model that every store is compared with: only the ports of the path, and their readers."""
    return open_model(clock=clock, fairness=fairness, dead_letter_ttl=DEAD_LETTER_TTL)


def on_sqlite(folder: Path, clock: StoreClock, fairness: Fairness) -> Opened:
    """A store in one file."""
    return open_sqlite(sqlite_file(folder), _sqlite_options(clock, fairness))


def _sqlite_options(clock: StoreClock, fairness: Fairness) -> SqliteOptions:
    return SqliteOptions(
        clock=clock, fairness=fairness, dead_letter_ttl=DEAD_LETTER_TTL, durable=False
    )


@asynccontextmanager
async def on_postgres(
    folder: Path, clock: StoreClock, fairness: Fairness
) -> AsyncIterator[Backend]:
    """A store in a separate database, named after the folder."""
    options = _postgres_options(clock, fairness)
    async with open_postgres(postgres_url(folder), options) as backend:
        yield backend


def postgres_url(folder: Path) -> str:
    """The database that belongs to the folder, from its first use on."""
    if folder not in _databases:
        _databases[folder] = reused_databases().take()
    # No schema is searched: a store's statement that leaves one out fails.
    return f"{shared_postgres().url(_databases[folder])}?options=-csearch_path%3D"


def _postgres_options(clock: StoreClock, fairness: Fairness) -> PostgresOptions:
    return PostgresOptions(
        clock=clock, fairness=fairness, dead_letter_ttl=DEAD_LETTER_TTL, connections=4
    )


def drop_postgres(folder: Path) -> None:
    """Empty the database that belongs to the folder, for the next one."""
    if folder in _databases:
        reused_databases().put_back(_databases.pop(folder))


@asynccontextmanager
async def on_redis_and_sqlite(
    folder: Path, clock: StoreClock, fairness: Fairness
) -> AsyncIterator[Backend]:
    """A ledger in one file, and a queue in a separate database."""
    ledger = open_sqlite_ledger(sqlite_file(folder), _sqlite_options(clock, fairness))
    async with _paired(ledger, _redis(folder, clock, fairness)) as backend:
        yield backend


@asynccontextmanager
async def on_redis_and_postgres(
    folder: Path, clock: StoreClock, fairness: Fairness
) -> AsyncIterator[Backend]:
    """A ledger in a separate database, and a queue in another server's."""
    ledger = open_postgres_ledger(postgres_url(folder), _postgres_options(clock, fairness))
    async with _paired(ledger, _redis(folder, clock, fairness)) as backend:
        yield backend


def drop_redis_and_postgres(folder: Path) -> None:
    """Drop the databases of `on_redis_and_postgres`."""
    drop_redis(folder)
    drop_postgres(folder)


@asynccontextmanager
async def _paired(
    ledger: AbstractAsyncContextManager[LedgerHalf], queue: AbstractAsyncContextManager[QueueHalf]
) -> AsyncIterator[Backend]:
    async with open_paired(ledger, queue) as pair:
        relay = Relay(pair.ledger, pair.queue, pair.found, term=timedelta(0))
        await relay.complete()  # as a new leader does
        yield pair.backend


def _redis(
    folder: Path, clock: StoreClock, fairness: Fairness
) -> AbstractAsyncContextManager[QueueHalf]:
    if folder not in _numbers:
        _numbers[folder] = redis_databases.pop()
    options = RedisOptions(clock=clock, fairness=fairness, patience=_PATIENCE)
    return open_redis(_redis_url(folder), options)


def drop_redis(folder: Path) -> None:
    """Empty the database that belongs to the folder, for the next one."""
    with Redis.from_url(_redis_url(folder)) as client:
        client.flushdb()
    redis_databases.append(_numbers.pop(folder))


def _redis_url(folder: Path) -> str:
    return f"{shared_redis().url.removesuffix('0')}{_numbers[folder]}"


# The stores that the contract suite runs on.
SET_UPS = (
    SetUp("sqlite", on_sqlite, in_files=True),
    SetUp("postgres", on_postgres, by_sql=True, on_servers=True, drops=drop_postgres),
    SetUp(
        "redis+sqlite",
        on_redis_and_sqlite,
        in_files=True,
        is_pair=True,
        on_servers=True,
        drops=drop_redis,
    ),
    SetUp(
        "redis+postgres",
        on_redis_and_postgres,
        by_sql=True,
        is_pair=True,
        on_servers=True,
        drops=drop_redis_and_postgres,
    ),
)
MODEL = SetUp("model", on_model)

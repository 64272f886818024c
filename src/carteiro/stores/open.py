"""Opens the store that the settings name. The only file that names concrete stores."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any
from urllib.parse import unquote

from carteiro.config import Settings
from carteiro.errors import ConfigError, StoreMoved, needing_extra
from carteiro.maintenance.relay import Relay, relay
from carteiro.model import EMAIL, ZERO, Fairness, SendLimit, Via
from carteiro.model.checkup import Finding
from carteiro.ports import Backend
from carteiro.ports.ledger import LedgerHalf
from carteiro.ports.moving import Source, Target
from carteiro.providers.choice import remember
from carteiro.runtime.acting import acting_as, on_this_machine
from carteiro.stores.paired_ports import open_paired
from carteiro.stores.sqlite import SqliteOptions, open_sqlite, open_sqlite_ledger
from carteiro.stores.sqlite.examine import examine, found_fairness, found_version
from carteiro.stores.sqlite.moving import open_source

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")
_MEMORY = "memory://"


@asynccontextmanager
async def open_backend(settings: Settings, *, governs: bool = True) -> AsyncIterator[Backend]:
    """Open the store that the settings name, and pass it their settings for sharing.

    A caller that only reads changes no settings: tiers and the send limit stay as others set them.
    """
    opened: AbstractAsyncContextManager[Backend]
    if settings.queue:
        opened = _open_paired(settings, relays=governs)
    elif settings.store == _MEMORY:
        opened = _open_temporary(settings)
    elif settings.store.startswith(_POSTGRES):
        opened = _postgres().open_postgres(settings.store, _postgres_options(settings))
    else:
        opened = open_sqlite(_path(settings), _sqlite_options(settings))
    async with opened as backend:
        if governs:
            await _govern(backend, settings)
        yield backend


@asynccontextmanager
async def _open_temporary(settings: Settings) -> AsyncIterator[Backend]:
    """A store that is deleted with this block: SQLite in a temporary folder. A killed process leaves it behind."""
    options = SqliteOptions(**_shared_options(settings), durable=False)
    with TemporaryDirectory(prefix="carteiro-") as folder:
        async with open_sqlite(Path(folder) / "carteiro.db", options) as backend:
            yield backend


@asynccontextmanager
async def _open_paired(settings: Settings, *, relays: bool) -> AsyncIterator[Backend]:
    """The store, a separate queue, and the relay that keeps the queue complete."""
    redis = _redis()
    options = redis.RedisOptions(fairness=settings.fairness.as_value())
    ledger, queue = _ledger(settings), redis.open_redis(settings.queue, options)
    async with open_paired(ledger, queue) as pair:
        relaying = (
            asyncio.create_task(relay(pair.ledger, pair.queue, pair.found)) if relays else None
        )
        kept = Relay(pair.ledger, pair.queue, pair.found, term=ZERO)
        try:
            yield replace(pair.backend, queue=kept)
        finally:
            if relaying is not None:
                relaying.cancel()
                await asyncio.wait([relaying])


def _ledger(settings: Settings) -> AbstractAsyncContextManager[LedgerHalf]:
    """The store that the settings name, without its own queue."""
    if settings.store == _MEMORY:
        origin = settings.origin("queue")
        text = f"queue (from {origin}) needs a durable store: set store, or leave queue empty"
        raise ConfigError(text)
    if settings.store.startswith(_POSTGRES):
        opened: AbstractAsyncContextManager[LedgerHalf] = _postgres().open_postgres_ledger(
            settings.store, _postgres_options(settings)
        )
        return opened
    return open_sqlite_ledger(_path(settings), _sqlite_options(settings))


def _shared_options(settings: Settings) -> dict[str, Any]:
    """The options that every store has."""
    return {
        "fairness": settings.fairness.as_value(),
        "dead_letter_ttl": settings.dead_letters.ttl,
    }


def _sqlite_options(settings: Settings) -> SqliteOptions:
    return SqliteOptions(
        **_shared_options(settings),
        min_free_bytes=settings.sqlite.min_free_bytes,
        busy_timeout_ms=settings.sqlite.busy_timeout // timedelta(milliseconds=1),
    )


def _redis() -> ModuleType:
    with needing_extra("A queue in Redis needs", "redis"):
        return import_module("carteiro.stores.redis")


def _postgres_options(settings: Settings) -> Any:  # noqa: ANN401 - of its package
    own = settings.postgres.model_dump()
    return _postgres().PostgresOptions(**_shared_options(settings), **own)


def _postgres() -> ModuleType:
    with needing_extra("The Postgres store needs", "postgres"):
        return import_module("carteiro.stores.postgres")


async def _govern(backend: Backend, settings: Settings) -> None:
    actor = on_this_machine(Via.SETTINGS)
    with (
        suppress(StoreMoved),
        acting_as(actor),
    ):  # it can still be read; every other process learns that it is closed
        for tier, weight in settings.tiers.items():
            await backend.tenants.weigh_tier(tier, weight)
        await backend.tenants.limit(EMAIL, _send_limit(settings))
        await remember(settings, backend.marks)


def _send_limit(settings: Settings) -> SendLimit | None:
    """The limit on claims: attempts start a little later than claims, so claims count for longer by that time."""
    limit = settings.send_limit.as_value()
    return limit and SendLimit(limit.count, limit.per + settings.send_limit.tolerance)


@asynccontextmanager
async def open_move(source: Settings, target: Settings) -> AsyncIterator[tuple[Source, Target]]:
    """Both ends of a move: the file that one set of settings names, and the database that the other set names."""
    if not source.store.startswith(_SQLITE) or not target.store.startswith(_POSTGRES):
        raise ConfigError("a move goes from sqlite:///FILE to postgresql://HOST/DATABASE")
    busy_ms = source.sqlite.busy_timeout // timedelta(milliseconds=1)
    async with _postgres().open_target(target.store, _postgres_options(target)) as arrival:
        with open_source(_path(source), busy_timeout_ms=busy_ms) as left:
            yield left, arrival


def store_exists(settings: Settings) -> bool:
    """True if there is something to open; opening creates a missing store."""
    return not settings.store.startswith(_SQLITE) or _path(settings).exists()


async def schema_version(settings: Settings) -> int:
    """The version of the store's schema; 0 if it has none, or there is no store yet."""
    if settings.store.startswith(_POSTGRES):
        return int(await _postgres().found_version(settings.store))
    return found_version(_path(settings)) if settings.store.startswith(_SQLITE) else 0


async def tuned_fairness(settings: Settings) -> Fairness | None:
    """The fairness settings, if they were changed at run time; nothing is created or migrated to read them."""
    if settings.store.startswith(_POSTGRES):
        tuned: Fairness | None = await _postgres().found_fairness(settings.store)
        return tuned
    return found_fairness(_path(settings)) if settings.store.startswith(_SQLITE) else None


async def examine_store(settings: Settings) -> list[Finding]:
    """Check the store that the settings name; nothing is changed."""
    if settings.store.startswith(_POSTGRES):
        return [each async for each in _postgres().examine(settings.store)]
    if settings.store.startswith(_SQLITE):
        return [*examine(_path(settings), min_free_bytes=settings.sqlite.min_free_bytes)]
    return []


async def examine_queue(settings: Settings) -> list[Finding]:
    """Check the separate queue, if there is one."""
    if not settings.queue:
        return []
    return [each async for each in _redis().examine(settings.queue)]


def dead_letter_folder(settings: Settings) -> Path:
    """Folder for dead letters above the limit: the setting, else the folder of the store's file."""
    if settings.dead_letters.export_folder:
        return Path(settings.dead_letters.export_folder).absolute()
    is_file = settings.store.startswith(_SQLITE)
    return ((_path(settings).parent if is_file else Path()) / "dead-letters").absolute()


def _path(settings: Settings) -> Path:
    return Path(unquote(settings.store.removeprefix(_SQLITE)))

"""The only file that names concrete adapters: what the settings ask for, wired together."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

from carteiro.checkup import Finding
from carteiro.config import Settings, secret
from carteiro.email import max_retries_of
from carteiro.errors import ConfigError, StoreMoved
from carteiro.kinds import Deliver, Kind
from carteiro.model import EMAIL, ZERO, Fairness, LeasedJob, Outcome
from carteiro.path.confirm import confirm
from carteiro.policy.own_rules import overruled_outcome
from carteiro.policy.retry import PRESETS, RetryPolicy
from carteiro.ports import Backend, Provider
from carteiro.ports.ledger import LedgerHalf
from carteiro.ports.moving import Source, Target
from carteiro.ports.provider import Handover, Parcel
from carteiro.providers.noop import NoopProvider
from carteiro.providers.sandbox import SandboxProvider
from carteiro.providers.smtp import SmtpOptions, SmtpProvider, Tls
from carteiro.rendering import render_email
from carteiro.stores.memory import open_memory
from carteiro.stores.paired_ports import open_paired
from carteiro.stores.sqlite import SqliteOptions, open_sqlite, open_sqlite_ledger
from carteiro.stores.sqlite.examine import examine, found_version
from carteiro.stores.sqlite.moving import open_source
from carteiro.upkeep.relay import Relay, RelayedQueue, relay

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")
_MEMORY = "memory://"
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


@asynccontextmanager
async def open_backend(settings: Settings, *, governs: bool = True) -> AsyncIterator[Backend]:
    """Open the store that the settings name, and tell it what they say of sharing.

    Whoever only looks in does not govern: tiers and the send limit stay as others set them.
    """
    fairness = settings.fairness.as_value()
    ttl = settings.dead_letters.ttl
    opened: AbstractAsyncContextManager[Backend]
    if settings.queue:
        opened = _open_paired(settings, fairness, ttl, relays=governs)
    elif settings.store == _MEMORY:
        opened = open_memory(fairness=fairness, dead_letter_ttl=ttl)
    elif settings.store.startswith(_POSTGRES):
        opened = _open_postgres(settings, fairness, ttl)
    else:
        opened = open_sqlite(
            _path(settings),
            fairness=fairness,
            dead_letter_ttl=ttl,
            min_free_bytes=settings.sqlite.min_free_bytes,
            busy_timeout_ms=settings.sqlite.busy_timeout // timedelta(milliseconds=1),
        )
    async with opened as backend:
        if governs:
            await _govern(backend, settings)
        yield backend


@asynccontextmanager
async def _open_paired(
    settings: Settings, fairness: Fairness, ttl: timedelta, *, relays: bool
) -> AsyncIterator[Backend]:
    """The store beside a queue of its own, and the relay that keeps the queue complete."""
    redis = _redis()
    ledger = _ledger(settings, fairness, ttl)
    queue = redis.open_redis(settings.queue, redis.RedisOptions(fairness=fairness))
    async with open_paired(ledger, queue) as pair:
        relaying = (
            asyncio.create_task(relay(pair.ledger, pair.queue, pair.found)) if relays else None
        )
        kept = RelayedQueue(pair.queue, Relay(pair.ledger, pair.queue, pair.found, term=ZERO))
        try:
            yield replace(pair.backend, queue=kept)
        finally:
            if relaying is not None:
                relaying.cancel()
                await asyncio.wait([relaying])


def _ledger(
    settings: Settings, fairness: Fairness, ttl: timedelta
) -> AbstractAsyncContextManager[LedgerHalf]:
    """The store as the settings name it, without its own queue."""
    if settings.store == _MEMORY:
        origin = settings.origin("queue")
        text = f"queue (from {origin}) stands beside a store that lasts: set store, or leave queue empty"
        raise ConfigError(text)
    if settings.store.startswith(_POSTGRES):
        options = _postgres_options(settings, fairness, ttl)
        opened: AbstractAsyncContextManager[LedgerHalf] = _postgres().open_postgres_ledger(
            settings.store, options
        )
        return opened
    return open_sqlite_ledger(
        _path(settings),
        SqliteOptions(
            fairness=fairness,
            dead_letter_ttl=ttl,
            min_free_bytes=settings.sqlite.min_free_bytes,
            busy_timeout_ms=settings.sqlite.busy_timeout // timedelta(milliseconds=1),
        ),
    )


def _redis() -> ModuleType:
    """The queue's package: it needs a driver that not everybody has."""
    try:
        return import_module("carteiro.stores.redis")
    except ModuleNotFoundError as error:
        text = f"A queue in Redis needs {error.name}: from a clone, pip install -c constraints.txt '.[redis]'"
        raise ConfigError(text) from error


def _open_postgres(
    settings: Settings, fairness: Fairness, ttl: timedelta
) -> AbstractAsyncContextManager[Backend]:
    options = _postgres_options(settings, fairness, ttl)
    opened: AbstractAsyncContextManager[Backend] = _postgres().open_postgres(
        settings.store, options
    )
    return opened


def _postgres_options(settings: Settings, fairness: Fairness, ttl: timedelta) -> Any:  # noqa: ANN401 - of its package
    asked = settings.postgres
    return _postgres().PostgresOptions(
        fairness=fairness,
        dead_letter_ttl=ttl,
        connections=asked.connections,
        command_timeout=asked.command_timeout,
        prepared_statements=asked.prepared_statements,
    )


def _postgres() -> ModuleType:
    """The store's package: it needs a driver that not everybody has."""
    try:
        return import_module("carteiro.stores.postgres")
    except ModuleNotFoundError as error:
        text = f"The Postgres store needs {error.name}: from a clone, pip install -c constraints.txt '.[postgres]'"
        raise ConfigError(text) from error


async def _govern(backend: Backend, settings: Settings) -> None:
    with suppress(StoreMoved):  # it can still be read, and tells everybody else that it is closed
        for tier, weight in settings.tiers.items():
            await backend.tenants.weigh_tier(tier, weight)
        await backend.tenants.limit(EMAIL, settings.send_limit.as_value())


@asynccontextmanager
async def open_move(source: Settings, target: Settings) -> AsyncIterator[tuple[Source, Target]]:
    """Both ends of a move: the file that one set of settings names, the database that another does."""
    if not source.store.startswith(_SQLITE) or not target.store.startswith(_POSTGRES):
        raise ConfigError("a move goes from sqlite:///FILE to postgresql://HOST/DATABASE")
    busy_ms = source.sqlite.busy_timeout // timedelta(milliseconds=1)
    options = _postgres_options(target, target.fairness.as_value(), target.dead_letters.ttl)
    async with _postgres().open_target(target.store, options) as arrival:
        with open_source(_path(source), busy_timeout_ms=busy_ms) as left:
            yield left, arrival


def store_exists(settings: Settings) -> bool:
    """Whether there is something to open; opening makes what is missing."""
    return not settings.store.startswith(_SQLITE) or _path(settings).exists()


async def schema_version(settings: Settings) -> int:
    """The version of the store's schema; 0 if it has none, or there is no store yet."""
    if settings.store.startswith(_POSTGRES):
        return int(await _postgres().found_version(settings.store))
    return found_version(_path(settings)) if settings.store.startswith(_SQLITE) else 0


async def examine_store(settings: Settings) -> list[Finding]:
    """Look whether the store that the settings name is sound, and the queue beside it; nothing is changed."""
    found: list[Finding] = []
    if settings.store.startswith(_POSTGRES):
        found += [each async for each in _postgres().examine(settings.store)]
    elif settings.store.startswith(_SQLITE):
        found += examine(_path(settings), min_free_bytes=settings.sqlite.min_free_bytes)
    if settings.queue:
        found += [each async for each in _redis().examine(settings.queue)]
    return found


def email_kind(settings: Settings, backend: Backend) -> tuple[Kind, bool]:
    """The kind that sends e-mail through the chosen provider, and whether that is across a network."""
    provider = _provider(settings, backend)
    kind = Kind(
        name=EMAIL,
        provider=provider.name,
        confirm=confirm,
        render=partial(render_email, templates=backend.templates),
        deliver=_as_ruled(provider, settings),
        policy=email_policy(settings),
        declares=True,
        call_limit=settings.delivery.call_limit,
        close=provider.close if isinstance(provider, SmtpProvider) else None,
        check=provider.check if isinstance(provider, SmtpProvider) else None,
    )
    return kind, isinstance(provider, SmtpProvider)


def _as_ruled(provider: Provider, settings: Settings) -> Deliver:
    """The provider's call, its answers judged by the operator's rules first."""
    rules, name, mx = settings.own_rules, provider.name, answering_host(provider.name, settings)
    if not rules:
        return provider.deliver

    async def deliver(parcel: Parcel, handover: Handover) -> Outcome:
        outcome = await provider.deliver(parcel, handover)
        return overruled_outcome(outcome, rules, provider=name, mx=mx)

    return deliver


def answering_host(provider: str, settings: Settings) -> str:
    """The host that answers for a provider, as far as the settings name it."""
    return settings.smtp.host if provider == "smtp" else ""


def email_policy(settings: Settings) -> Callable[[LeasedJob], RetryPolicy]:
    """The retry policy of a job: of the preset that its template or tenant names, else the configured one.

    What came through the table queue has its own: `transactional`, with as many failures as its row allows.
    """
    configured = retry_policy(settings)
    named: dict[str | None, RetryPolicy] = {
        name: _as_configured(preset, settings) for name, preset in PRESETS.items()
    }

    def policy(job: LeasedJob) -> RetryPolicy:
        most = max_retries_of(job.content)
        if most is not None:
            return replace(named["transactional"], max_attempts=most)
        return named.get(job.retry_preset, configured)

    return policy


def retry_policy(settings: Settings) -> RetryPolicy:
    """The retry policy in force."""
    return _as_configured(PRESETS[settings.retry_preset], settings)


def _as_configured(preset: RetryPolicy, settings: Settings) -> RetryPolicy:
    return replace(
        preset,
        charge=settings.retry.charge,
        max_in_doubt_resends=settings.delivery.max_in_doubt_resends,
    )


def _provider(settings: Settings, backend: Backend) -> Provider:
    match settings.provider:
        case "sandbox":
            return SandboxProvider(backend.inbox, seed=settings.sandbox.seed)
        case "noop":
            return NoopProvider()
        case "smtp":
            return _smtp(settings)


def _password(settings: Settings) -> str:
    try:
        return secret(settings.smtp.password)
    except ConfigError as error:
        text = f"smtp.password (from {settings.origin('smtp.password')}) = {error}"
        raise ConfigError(text) from None


def _smtp(settings: Settings) -> SmtpProvider:
    asked = settings.smtp
    if asked.username and asked.tls == "none" and asked.host not in _THIS_MACHINE:
        origin = settings.origin("smtp.tls")
        text = f"smtp.tls = 'none' (from {origin}) would send the password in clear: use starttls or implicit"
        raise ConfigError(text)
    told = asked.model_dump() | {"tls": Tls(asked.tls), "password": _password(settings)}
    try:
        return SmtpProvider(SmtpOptions(**told))
    except OSError as error:
        origin = settings.origin("smtp.ca_file")
        text = (
            f"smtp.ca_file = {asked.ca_file!r} (from {origin}): no certificates to be read: {error}"
        )
        raise ConfigError(text) from None


def dead_letter_folder(settings: Settings) -> Path:
    """Where dead letters go that are too many: as set, else beside the store's file."""
    if settings.dead_letters.export_folder:
        return Path(settings.dead_letters.export_folder).absolute()
    is_file = settings.store.startswith(_SQLITE)
    return ((_path(settings).parent if is_file else Path()) / "dead-letters").absolute()


def _path(settings: Settings) -> Path:
    return Path(unquote(settings.store.removeprefix(_SQLITE)))

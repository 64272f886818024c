"""The only file that names concrete adapters: what the settings ask for, wired together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

from carteiro.config import Settings
from carteiro.errors import ConfigError
from carteiro.kinds import Kind
from carteiro.model import EMAIL
from carteiro.path.confirm import confirm
from carteiro.policy.retry import PRESETS, RetryPolicy
from carteiro.ports import Backend, Provider
from carteiro.providers.noop import NoopProvider
from carteiro.providers.sandbox import SandboxProvider
from carteiro.stores.memory import open_memory
from carteiro.stores.sqlite import open_sqlite

_SQLITE = "sqlite:///"
_MEMORY = "memory://"


@asynccontextmanager
async def open_backend(settings: Settings) -> AsyncIterator[Backend]:
    """Open the store that the settings name, and tell it what they say of sharing."""
    fairness = settings.fairness.as_value()
    ttl = settings.dead_letters.ttl
    if settings.store == _MEMORY:
        opened = open_memory(fairness=fairness, dead_letter_ttl=ttl)
    elif settings.store.startswith(_SQLITE):
        opened = open_sqlite(
            _path(settings),
            fairness=fairness,
            dead_letter_ttl=ttl,
            min_free_bytes=settings.sqlite.min_free_bytes,
            busy_timeout_ms=settings.sqlite.busy_timeout // timedelta(milliseconds=1),
        )
    else:
        raise _unknown("store", settings.store, settings, "sqlite:///FILE or memory://")
    async with opened as backend:
        for tier, weight in settings.tiers.items():
            await backend.tenants.weigh_tier(tier, weight)
        await backend.tenants.limit(EMAIL, settings.send_limit.as_value())
        yield backend


def email_kind(settings: Settings, backend: Backend) -> tuple[Kind, bool]:
    """The kind that sends e-mail through the chosen provider, and whether that is across a network."""
    provider = _provider(settings, backend)
    policy = retry_policy(settings)
    kind = Kind(
        name=EMAIL,
        provider=provider.name,
        confirm=confirm,
        deliver=provider.deliver,
        policy=lambda _: policy,
        declares=True,
        call_limit=settings.delivery.call_limit,
    )
    return kind, False  # both providers of today are local


def retry_policy(settings: Settings) -> RetryPolicy:
    """The retry policy in force."""
    return replace(
        PRESETS[settings.retry_preset],
        charge=settings.retry.charge,
        max_in_doubt_resends=settings.delivery.max_in_doubt_resends,
    )


def _provider(settings: Settings, backend: Backend) -> Provider:
    match settings.provider:
        case "sandbox":
            return SandboxProvider(backend.inbox, seed=settings.sandbox.seed)
        case "noop":
            return NoopProvider()
        case other:
            raise _unknown("provider", other, settings, "sandbox or noop")


def _path(settings: Settings) -> Path:
    path = unquote(settings.store.removeprefix(_SQLITE))
    if not path:
        raise _unknown("store", settings.store, settings, "sqlite:///FILE, with a file")
    return Path(path)


def _unknown(key: str, given: str, settings: Settings, allowed: str) -> ConfigError:
    return ConfigError(
        f"{key} = {given!r} (from {settings.origin(key)}) is not known: use {allowed}"
    )

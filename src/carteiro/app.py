"""The only file that names concrete adapters: what the settings ask for, wired together."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

from carteiro.checkup import Finding
from carteiro.config import Settings, secret
from carteiro.errors import ConfigError
from carteiro.kinds import Kind
from carteiro.model import EMAIL, LeasedJob
from carteiro.path.confirm import confirm
from carteiro.policy.retry import PRESETS, RetryPolicy
from carteiro.ports import Backend, Provider
from carteiro.providers.noop import NoopProvider
from carteiro.providers.sandbox import SandboxProvider
from carteiro.providers.smtp import SmtpOptions, SmtpProvider, Tls
from carteiro.stores.memory import open_memory
from carteiro.stores.sqlite import open_sqlite
from carteiro.stores.sqlite.examine import examine, found_version

_SQLITE = "sqlite:///"
_MEMORY = "memory://"
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


@asynccontextmanager
async def open_backend(settings: Settings, *, governs: bool = True) -> AsyncIterator[Backend]:
    """Open the store that the settings name, and tell it what they say of sharing.

    Whoever only looks in does not govern: tiers and the send limit stay as others set them.
    """
    fairness = settings.fairness.as_value()
    ttl = settings.dead_letters.ttl
    if settings.store == _MEMORY:
        opened = open_memory(fairness=fairness, dead_letter_ttl=ttl)
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


async def _govern(backend: Backend, settings: Settings) -> None:
    for tier, weight in settings.tiers.items():
        await backend.tenants.weigh_tier(tier, weight)
    await backend.tenants.limit(EMAIL, settings.send_limit.as_value())


def store_exists(settings: Settings) -> bool:
    """Whether there is something to open; opening makes what is missing."""
    return not settings.store.startswith(_SQLITE) or _path(settings).exists()


def schema_version(settings: Settings) -> int:
    """The version of the store's schema; 0 if it has none, or there is no store yet."""
    return found_version(_path(settings)) if settings.store.startswith(_SQLITE) else 0


def examine_store(settings: Settings) -> Iterator[Finding]:
    """Look whether the store that the settings name is sound; nothing is changed."""
    if settings.store.startswith(_SQLITE):
        yield from examine(_path(settings), min_free_bytes=settings.sqlite.min_free_bytes)


def email_kind(settings: Settings, backend: Backend) -> tuple[Kind, bool]:
    """The kind that sends e-mail through the chosen provider, and whether that is across a network."""
    provider = _provider(settings, backend)
    kind = Kind(
        name=EMAIL,
        provider=provider.name,
        confirm=confirm,
        deliver=provider.deliver,
        policy=email_policy(settings),
        declares=True,
        call_limit=settings.delivery.call_limit,
        close=provider.close if isinstance(provider, SmtpProvider) else None,
        check=provider.check if isinstance(provider, SmtpProvider) else None,
    )
    return kind, isinstance(provider, SmtpProvider)


def email_policy(settings: Settings) -> Callable[[LeasedJob], RetryPolicy]:
    """The retry policy of a job: of the preset that its template or tenant names, else the configured one."""
    configured = retry_policy(settings)
    named: dict[str | None, RetryPolicy] = {
        name: _as_configured(preset, settings) for name, preset in PRESETS.items()
    }
    return lambda job: named.get(job.retry_preset, configured)


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

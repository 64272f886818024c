"""Who takes mail over: the providers that settings name, made as they say."""

from importlib import import_module
from typing import Protocol, runtime_checkable

from carteiro.config import Settings, secret
from carteiro.errors import ConfigError
from carteiro.ports import Backend, Provider
from carteiro.ports.provider import QuotaProvider
from carteiro.providers.noop.provider import NoopProvider
from carteiro.providers.rate_limiter import Limits
from carteiro.providers.sandbox.provider import SandboxProvider
from carteiro.providers.smtp.options import SmtpOptions, Tls
from carteiro.providers.smtp.provider import SmtpProvider

_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
_PACE = {"rate_per_second", "concurrency"}  # what a provider itself knows nothing of


@runtime_checkable
class _Paced(Protocol):
    """The section of a provider that can be called too fast."""

    rate_per_second: float
    concurrency: int


def make_provider(name: str, settings: Settings, backend: Backend) -> Provider:
    """The provider of a name as `config.provider_names` lets it through: ``smtp``, ``ses:eu-west-1``."""
    type_, _, region = name.partition(":")
    match type_:
        case "sandbox":
            return SandboxProvider(backend.inbox, seed=settings.sandbox.seed)
        case "smtp":
            return _smtp(settings)
        case "ses":
            return _ses(settings, region)
        case "resend":
            return _resend(settings)
        case "noop":
            return NoopProvider()
        case _:  # to take its mail and drop it would look like success
            text = f"{name}: there is no such provider to be made: providers/registry.py does not know it"
            raise ConfigError(text)


def limits_of(provider: Provider, settings: Settings) -> Limits | None:
    """How fast a provider may be called; None: there is nothing that could be too fast."""
    asked = _pace_of(provider.name, settings)
    if asked is None:
        return None
    quota = provider.quota if isinstance(provider, QuotaProvider) else None
    return Limits(asked.rate_per_second, asked.concurrency, quota)


def is_paced(name: str, settings: Settings) -> bool:
    """Whether the provider of a name could be called too fast."""
    return _pace_of(name.partition(":")[0], settings) is not None


def _pace_of(type_: str, settings: Settings) -> _Paced | None:
    """The section of a type of provider, if it has a pace."""
    section = getattr(settings, type_, None)
    return section if isinstance(section, _Paced) else None


def _secret(settings: Settings, key: str, reference: str) -> str:
    try:
        return secret(reference)
    except ConfigError as error:
        text = f"{key} (from {settings.origin(key)}) = {error}"
        raise ConfigError(text) from None


def _resend(settings: Settings) -> Provider:
    """The provider of a package that needs a library which not everybody has."""
    try:
        resend = import_module("carteiro.providers.resend.provider")
    except ModuleNotFoundError as error:
        text = (
            f"Resend needs {error.name}: from a clone, pip install -c constraints.txt '.[resend]'"
        )
        raise ConfigError(text) from error
    asked = settings.resend
    key = _secret(settings, "resend.api_key", asked.api_key)
    if not (key.isascii() and key.isprintable() and key.strip()):
        origin = settings.origin("resend.api_key")
        raise ConfigError(f"resend.api_key (from {origin}) does not lead to a key")
    told = asked.model_dump(exclude=_PACE) | {"api_key": key.strip()}
    provider: Provider = resend.ResendProvider(resend.ResendOptions(**told))
    return provider


def _smtp(settings: Settings) -> SmtpProvider:
    asked = settings.smtp
    if asked.username and asked.tls == "none" and asked.host not in _THIS_MACHINE:
        origin = settings.origin("smtp.tls")
        text = f"smtp.tls = 'none' (from {origin}) would send the password in clear: use starttls or implicit"
        raise ConfigError(text)
    password = _secret(settings, "smtp.password", asked.password)
    told = asked.model_dump(exclude=_PACE) | {"tls": Tls(asked.tls), "password": password}
    try:
        return SmtpProvider(SmtpOptions(**told))
    except OSError as error:
        origin = settings.origin("smtp.ca_file")
        text = (
            f"smtp.ca_file = {asked.ca_file!r} (from {origin}): no certificates to be read: {error}"
        )
        raise ConfigError(text) from None


def _ses(settings: Settings, region: str) -> Provider:
    """The provider of a region, or of the one that is set."""
    asked = settings.ses
    if bool(asked.access_key_id) != bool(asked.secret_access_key):
        key = "ses.access_key_id" if asked.access_key_id else "ses.secret_access_key"
        text = (
            f"{key} (from {settings.origin(key)}): access_key_id and secret_access_key go together"
        )
        raise ConfigError(text)
    try:
        ses = import_module("carteiro.providers.ses.provider")
    except ModuleNotFoundError as error:
        text = (
            f"Amazon SES needs {error.name}: from a clone, pip install -c constraints.txt '.[ses]'"
        )
        raise ConfigError(text) from error
    told = asked.model_dump(exclude=_PACE) | {
        "secret_access_key": _secret(settings, "ses.secret_access_key", asked.secret_access_key),
        "call_limit": settings.delivery.call_limit,
        "region": region or asked.region,
    }
    provider: Provider = ses.SesProvider(ses.SesOptions(**told))
    return provider

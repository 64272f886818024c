"""Make the providers that settings name, and say how fast each may be called."""

from typing import Protocol, runtime_checkable

from carteiro.config import Settings, spec_of
from carteiro.errors import needing_extra
from carteiro.ports import Backend, Provider
from carteiro.ports.provider import QuotaProvider
from carteiro.providers.rate_limiter import Limits


@runtime_checkable
class _Paced(Protocol):
    """The section of a provider that can be called too fast."""

    rate_per_second: float
    concurrency: int


def make_provider(name: str, settings: Settings, backend: Backend) -> Provider:
    """The provider of a name as routes have it: ``smtp``, ``ses:eu-west-1``."""
    spec = spec_of(name)
    with needing_extra(f"{spec.title or spec.name} needs", spec.extra):
        return spec.make(settings, backend, name.partition(":")[2])


def limits_of(provider: Provider, settings: Settings) -> Limits | None:
    """The rate limiter of a provider; None if it needs none."""
    asked = _pace_of(provider.name, settings)
    if asked is None:
        return None
    quota = provider.quota if isinstance(provider, QuotaProvider) else None
    return Limits(asked.rate_per_second, asked.concurrency, quota)


def is_paced(name: str, settings: Settings) -> bool:
    """True if the provider of this name has a rate limit."""
    return _pace_of(name.partition(":")[0], settings) is not None


def _pace_of(type_: str, settings: Settings) -> _Paced | None:
    """The section of a type of provider, if it has a pace."""
    section = getattr(settings, type_, None)
    return section if isinstance(section, _Paced) else None

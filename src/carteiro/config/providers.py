"""The providers that are installed: those that come with Carteiro, and those of other packages, by an entry point.

Every other module asks here. A spec is small, so all are loaded once; a provider's library is imported when it is made.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from carteiro.config.provider_spec import ProviderSpec
from carteiro.errors import ConfigError
from carteiro.policy.rules.answers import Answers

GROUP = "carteiro.providers"
_BUILT_IN = ("sandbox", "smtp", "ses", "resend", "noop")
_NAME = re.compile(r"[a-z][a-z0-9]*", re.ASCII)  # also a table of settings and a part of codes


@cache
def specs() -> Mapping[str, ProviderSpec]:
    """Every spec by its name; `ConfigError` if a package offers one that cannot be used."""
    built_in = [import_module(f"carteiro.providers.{name}.spec").SPEC for name in _BUILT_IN]
    found = {each.name: each for each in built_in}
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        found[point.name] = _loaded(point, taken=found)
    return found


@cache
def answers() -> Mapping[str, Answers]:
    """The answers of every provider that gives any, by its name."""
    return {name: spec.answers for name, spec in specs().items() if spec.answers}


def spec_of(name: str) -> ProviderSpec:
    """The spec of a provider, with or without a region: ``smtp``, ``ses:eu-west-1``."""
    try:
        return specs()[name.partition(":")[0]]
    except KeyError:  # to take its mail and drop it would look like success
        raise ConfigError(f"{name}: there is no such provider: {', '.join(specs())}") from None


def is_remote(name: str) -> bool:
    """Return True if a provider sends mail to a server outside this machine."""
    return spec_of(name).features.is_remote


def _loaded(point: EntryPoint, taken: Mapping[str, ProviderSpec]) -> ProviderSpec:
    name, place = point.name, point.value
    try:
        spec = point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"provider {name} (from {place}): cannot be loaded: {error}") from error
    if not isinstance(spec, ProviderSpec) or spec.name != name or not _NAME.fullmatch(name):
        raise ConfigError(
            f"provider {name} (from {place}): should be a ProviderSpec of that name, of small letters and digits"
        )
    if name in taken:
        raise ConfigError(f"provider {name} (from {place}): another package has this name")
    return spec

"""Settings are read here: default file < carteiro.toml < environment < flags; each value knows its origin."""

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from carteiro.config.sections import (
    FREE_TABLES,
    KEYS,
    Given,
    PresetSettings,
    Settings,
    VerdictSettings,
)
from carteiro.config.values import provider_names, shown_setting
from carteiro.errors import ConfigError

FILE_NAME = "carteiro.toml"
ENV_PREFIX = "CARTEIRO_"
ENV_FILE = "CARTEIRO_CONFIG"
# Variables that deployments of a ticket lane have already; a variable with our prefix wins over them.
KNOWN_VARIABLES = {
    "KAFKA_BOOTSTRAP_SERVERS": "tickets.bootstrap_servers",
    "KAFKA_DLQ_TOPIC": "tickets.dlq_topic",
    "KAFKA_MAX_RETRIES_BEFORE_DLQ": "tickets.max_retries_before_dlq",
}

_TYPES_OF_TICKETS = (
    "ticket_urls"  # its keys are task types: they keep their case, and may have dots
)

# A service called "carteiro" makes Kubernetes set variables of these shapes in every pod.
_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT)|_PORT_\d+_(TCP|UDP)")
_SERVICE_LINK_VALUES = ("tcp://", "udp://")

_SECRETS = frozenset(
    {
        *("smtp.password", "resend.api_key", "ses.secret_access_key", "feedback.resend_secret"),
        "ses.access_key_id",  # a wrong value may be the secret itself
    }
)  # a secret written by mistake must not appear in a log

_TABLES = "retry.presets"  # the only setting that is a table of tables
_LIST = "verdicts"  # the only setting that is a list of tables

# The library's text for these does not help.
_ALLOWED = {
    "missing": "is missing",
}
_PRESET_KEYS = [field.alias or name for name, field in PresetSettings.model_fields.items()]
_HAS = {
    _LIST: f"a rule has no such key: it has {', '.join(VerdictSettings.model_fields)}",
    _TABLES: f"a preset has no such key: it has {', '.join(_PRESET_KEYS)}",
}


def load(
    *,
    file: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Read all layers; later ones win. An unknown or wrong value raises `ConfigError`.

    ``file`` must exist, as must the one that CARTEIRO_CONFIG names; without either, carteiro.toml
    is read if it exists. ``overrides`` are the flags, by key; None is a flag not given.
    """
    environ = os.environ if environ is None else environ
    given: dict[str, Given] = {}
    for layer in (
        _flattened(tomllib.loads(default_text()), "default"),
        _from_file(file or environ.get(ENV_FILE)),
        _from_environ(environ),
        _from_flags(overrides or {}),
    ):
        given.update((each.key, each) for each in layer)
    return _checked(given)


def default_text() -> str:
    """The commented default file."""
    return resources.files("carteiro").joinpath("config.default.toml").read_text("utf-8")


@cache
def default_values() -> Mapping[str, object]:
    """The values of the default file, by key."""
    return {each.key: each.raw for each in _flattened(tomllib.loads(default_text()), "default")}


def secret(reference: str, *, environ: Mapping[str, str] | None = None) -> str:
    """The secret behind ``env:NAME`` or ``file:PATH``, without the line end; empty for an empty reference."""
    environ = os.environ if environ is None else environ
    place, _, name = reference.partition(":")
    if not reference:
        return ""
    if place == "env":
        if not environ.get(name):
            text = f"{reference}: the environment variable is not set"
            raise ConfigError(text)
        return environ[name]
    try:
        return Path(name).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        text = f"{reference}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}"
        raise ConfigError(text) from None


def env_name(key: str) -> str:
    """The environment variable of a setting."""
    return ENV_PREFIX + key.replace(".", "_").upper()


def _from_file(named: str | Path | None) -> Iterator[Given]:
    path = Path(named or FILE_NAME)
    if not named and not path.exists():
        return iter(())
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # bad TOML and bad UTF-8 alike
        raise ConfigError(f"{path}: is not a TOML file: {error}") from error
    return _flattened(table, str(path))


def _flattened(table: Mapping[str, Any], origin: str, prefix: str = "") -> Iterator[Given]:
    for name, raw in table.items():
        if isinstance(raw, dict) and prefix + name != _TABLES:
            yield from _flattened(raw, origin, f"{prefix}{name}.")
        else:
            yield Given(_known(prefix + name, origin), raw, origin)


def _from_environ(environ: Mapping[str, str]) -> Iterator[Given]:
    for name in KNOWN_VARIABLES.keys() & environ.keys():
        yield Given(KNOWN_VARIABLES[name], environ[name], f"environment variable {name}")
    keys = {env_name(key): key for key in KEYS}
    for name, text in environ.items():
        if not name.startswith(ENV_PREFIX) or name == ENV_FILE or _is_service_link(name, text):
            continue
        key = keys.get(name) or _free_key(name)
        if key is None:
            _refuse_unknown(name, "environment", keys)
        yield Given(key, text, f"environment variable {name}")


def _is_service_link(name: str, text: str) -> bool:
    return bool(_SERVICE_LINK.search(name)) or text.startswith(_SERVICE_LINK_VALUES)


def _free_key(name: str) -> str | None:
    for table in FREE_TABLES:
        own = name.removeprefix(env_name(f"{table}."))
        if own not in {name, ""}:
            return f"{table}.{own if table == _TYPES_OF_TICKETS else own.lower()}"
    return None


def _from_flags(overrides: Mapping[str, object]) -> Iterator[Given]:
    for key, raw in overrides.items():
        if raw is not None:
            yield Given(_known(key, "flag"), raw, "flag")


def _known(key: str, origin: str) -> str:
    table, _, own = key.partition(".")
    if table == _LIST and own:
        text = f"[{_LIST}] (from {origin}): write [[{_LIST}]], in two brackets, above each rule"
        raise ConfigError(text)
    if key not in KEYS and (table not in FREE_TABLES or not own or _is_deep(table, own)):
        _refuse_unknown(key, origin, KEYS)
    return key


def _is_deep(table: str, own: str) -> bool:
    return "." in own and table != _TYPES_OF_TICKETS


def _refuse_unknown(name: str, origin: str, known: Iterable[str]) -> NoReturn:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ConfigError(f"{name} (from {origin}): no such setting{hint}")


# --- checking them ----------------------------------------------------------------------------


def _checked(given: Mapping[str, Given]) -> Settings:
    try:
        settings = Settings.model_validate(_nested(given))
    except ValidationError as error:
        raise ConfigError("\n".join(_complaints(error, given))) from None
    settings._given = given  # noqa: SLF001 - its maker may
    _refuse_one_region_twice(settings)
    return settings


def _refuse_one_region_twice(settings: Settings) -> None:
    """Reject one region under two names: it would have two rate limits, and fail over to itself."""
    routes = _routes(settings)
    usual = settings.ses.region
    is_named = any("ses" in provider_names(route) for route in routes.values())
    for key, route in routes.items() if is_named else ():
        for region in (name.partition(":")[2] for name in provider_names(route)):
            if region and usual in {"", region}:
                means = (
                    f"means {region}" if usual else "may mean any region, as ses.region is not set"
                )
                advice = f"has ses:{region} and ses, which {means}: write ses:REGION for each, and each region once"
                raise ConfigError(f"{key} = {route!r} (from {settings.origin(key)}): {advice}")


def _routes(settings: Settings) -> dict[str, str]:
    """Every route by its key."""
    free = {"tenant_routes": settings.tenant_routes, "type_routes": settings.type_routes}
    named = {f"{table}.{key}": each for table, own in free.items() for key, each in own.items()}
    return {"provider": settings.provider, **named}


def _nested(given: Mapping[str, Given]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for each in given.values():
        section, dot, name = each.key.partition(".")
        section, name = (section, name) if dot else ("", section)
        (tree.setdefault(section, {}) if section else tree)[name] = each.raw
    return tree


def _complaints(error: ValidationError, given: Mapping[str, Given]) -> Iterator[str]:
    """One line per setting: its key, its value, its origin, and the allowed values."""
    for each in error.errors():
        wrong, inside = _found(given, [str(part) for part in each["loc"]], each["input"])
        said = each["msg"].removeprefix("Value error, ").removeprefix("Input ")
        allowed = _ALLOWED.get(each["type"], said)
        if each["type"] == "extra_forbidden":
            allowed = _HAS.get(wrong.key, said)
        written = (
            "(not shown)" if wrong.key in _SECRETS else repr(shown_setting(wrong.key, wrong.raw))
        )
        yield f"{wrong.key}{inside} = {written} (from {wrong.origin}): {allowed}"


def _found(given: Mapping[str, Given], parts: list[str], written: object) -> tuple[Given, str]:
    """The setting of a complaint, and the place inside it; lists count from 1."""
    whole = given.get(".".join(parts))
    if whole is not None:
        return whole, ""
    if ".".join(parts[:2]) == _TABLES:
        return Given(_TABLES, written, given[_TABLES].origin), "".join(
            f".{each}" for each in parts[2:]
        )
    key, number, *rest = parts
    inside = f"[{int(number) + 1}]{''.join(f'.{part}' for part in rest)}"
    return Given(key, written, given[key].origin), inside

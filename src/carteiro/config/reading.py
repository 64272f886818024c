"""Settings are read here: default file < carteiro.toml < environment < flags; each value knows its origin."""

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from carteiro.config.providers import specs
from carteiro.config.sections import (
    FREE_TABLES,
    Given,
    PresetSettings,
    Settings,
    VerdictSettings,
    setting_keys,
    settings_type,
)
from carteiro.config.values import Hidden, shown_setting
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

# Its keys are task types: they keep their case, and may have dots.
_TYPES_OF_TICKETS = "ticket_urls"

# A service called "carteiro" makes Kubernetes set variables of these shapes in every pod.
_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT)|_PORT_\d+_(TCP|UDP)")
_SERVICE_LINK_VALUES = ("tcp://", "udp://")

_TABLES = "retry.presets"  # the one setting that is tables by their names
_TABLE = re.compile(r"^\[(\w+)\]\n", re.MULTILINE)
_LIST = "verdicts"  # the one setting that is tables in a row

# In place of the library's texts.
_ALLOWED = {
    **dict.fromkeys(("bool_parsing", "bool_type"), "should be true or false"),
    **dict.fromkeys(("float_parsing", "float_type"), "should be a number"),
    **dict.fromkeys(("int_from_float", "int_parsing", "int_type"), "should be a whole number"),
    "greater_than": "should be above {gt}",
    "greater_than_equal": "should be at least {ge}",
    "int_parsing_size": "is too large",
    "less_than": "should be below {lt}",
    "less_than_equal": "should be at most {le}",
    "missing": "is missing",
    "string_type": "should be a text",
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
    origin: Callable[[str], str] = lambda _: "flag",
) -> Settings:
    """Read all layers; later ones win. An unknown or wrong value raises `ConfigError`.

    ``file`` must exist, as must the one that CARTEIRO_CONFIG names; without either, carteiro.toml
    is read if it exists. ``overrides`` are the flags, by key; None is a flag not given. ``origin``
    names the flag of a key, for errors.
    """
    environ = os.environ if environ is None else environ
    given: dict[str, Given] = {}
    for layer in (
        _flattened(tomllib.loads(default_text()), "default"),
        _from_file(file or environ.get(ENV_FILE)),
        _from_environ(environ),
        _from_flags(overrides or {}, origin),
    ):
        given.update((each.key, each) for each in layer)
    return _checked(given)


@cache
def default_sections() -> Mapping[str, str]:
    """The commented defaults by their table, the top level first: of the default file, then of each provider."""
    own = resources.files("carteiro").joinpath("config.default.toml").read_text("utf-8")
    sections: dict[str, str] = {}
    for text in (own, *(spec.defaults for spec in specs().values())):
        top, *rest = _TABLE.split(text)
        for name, body in zip(["", *rest[::2]], [top, *rest[1::2]], strict=True):
            sections[name] = sections.get(name, "") + body.rstrip() + "\n\n"
    return sections


def default_text() -> str:
    """The commented defaults, as one file would have them."""
    return "".join(
        f"[{name}]\n{body}" if name else body for name, body in default_sections().items()
    )


@cache
def default_values() -> Mapping[str, object]:
    """Return the defaults by key."""
    return {each.key: each.raw for each in _flattened(tomllib.loads(default_text()), "default")}


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
    known = {env_name(key): key for key in setting_keys()}
    for name, text in environ.items():
        if not name.startswith(ENV_PREFIX) or name == ENV_FILE or _is_service_link(name, text):
            continue
        key = known.get(name) or _free_key(name)
        if key is None:
            _refuse_unknown(name, "environment", known)
        yield Given(key, text, f"environment variable {name}")


def _is_service_link(name: str, text: str) -> bool:
    return bool(_SERVICE_LINK.search(name)) or text.startswith(_SERVICE_LINK_VALUES)


def _free_key(name: str) -> str | None:
    for table in FREE_TABLES:
        own = name.removeprefix(env_name(f"{table}."))
        if own not in {name, ""}:
            return f"{table}.{own if table == _TYPES_OF_TICKETS else own.lower()}"
    return None


def _from_flags(overrides: Mapping[str, object], origin: Callable[[str], str]) -> Iterator[Given]:
    for key, raw in overrides.items():
        if raw is not None:
            yield Given(_known(key, origin(key)), raw, origin(key))


def _known(key: str, origin: str) -> str:
    table, _, own = key.partition(".")
    if table == _LIST and own:
        text = f"[{_LIST}] (from {origin}): write [[{_LIST}]], in two brackets, above each rule"
        raise ConfigError(text)
    if key not in setting_keys() and (table not in FREE_TABLES or not own or _is_deep(table, own)):
        _refuse_unknown(key, origin, setting_keys())
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
        settings = settings_type().model_validate(_nested(given))
    except ValidationError as error:
        raise ConfigError("\n".join(_complaints(error, given))) from None
    settings._given = given  # noqa: SLF001 - its maker may
    for spec in specs().values():
        if spec.validate is not None:
            spec.validate(settings)
    return settings


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
        plain = _ALLOWED.get(each["type"])
        allowed = said if plain is None else plain.format_map(each.get("ctx", {}))
        if each["type"] == "extra_forbidden":
            allowed = _HAS.get(wrong.key, said)
        written = (
            "(not shown)" if _is_hidden(wrong.key) else repr(shown_setting(wrong.key, wrong.raw))
        )
        yield f"{wrong.key}{inside} = {written} (from {wrong.origin}): {allowed}"


def _is_hidden(key: str) -> bool:
    return key in setting_keys() and any(
        isinstance(each, Hidden) for each in setting_keys()[key].metadata
    )


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

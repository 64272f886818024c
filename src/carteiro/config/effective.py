"""The effective settings with their origins, as in a settings file; secrets are never shown."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict

from carteiro.config.reading import default_values
from carteiro.config.sections import Given, Settings
from carteiro.config.values import shown_setting
from carteiro.model import Fairness


def effective(settings: Settings, tuned: Fairness | None) -> list[Given]:
    """Every setting, with what was changed at run time for all workers."""
    given = settings.given()
    changed = {} if tuned is None else {f"fairness.{k}": each for k, each in asdict(tuned).items()}
    return [
        Given(
            row.key, changed[row.key], f"run time, overrides {as_toml(typed(row))} ({row.origin})"
        )
        if row.key in changed
        else row
        for row in given
    ]


def lines(row: Given) -> Iterator[tuple[str, str]]:
    """Key and value as in a settings file; named tables and rules have a line each."""
    raw = typed(row)
    if isinstance(raw, dict) and raw:
        parts = [(f"{row.key}.{name}", each) for name, each in raw.items()]
    elif isinstance(raw, list) and raw:
        parts = [(f"{row.key}[{number}]", each) for number, each in enumerate(raw, 1)]
    else:
        parts = [(row.key, raw)]
    for key, each in parts:
        yield key, as_toml(each)


def typed(row: Given) -> object:
    """The typed value; in variables and flags all values are text."""
    if isinstance(row.raw, str) and not isinstance(default_values().get(row.key, ""), str):
        with suppress(ValueError):
            return json.loads(row.raw)
    return shown_setting(row.key, row.raw)


def as_toml(raw: object) -> str:
    """The value as in a settings file."""
    match raw:
        case str():
            return json.dumps(raw, ensure_ascii=False)
        case bool():
            return str(raw).lower()
        case {**table}:
            inside = ", ".join(f"{name} = {as_toml(each)}" for name, each in table.items())
            return f"{{ {inside} }}" if inside else "{}"
        case [*each]:
            return f"[{', '.join(map(as_toml, each))}]"
        case _:
            return str(raw)

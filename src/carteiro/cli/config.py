"""``carteiro config``: the effective settings, and their origins."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict

import typer

from carteiro.cli.desk import told
from carteiro.cli.options import AsJson, ConfigFile
from carteiro.cli.printing import Printer, note
from carteiro.config import Given, Settings, default_values, load, shown_setting
from carteiro.errors import CarteiroError
from carteiro.stores.open import tuned_fairness

app = typer.Typer(help="Show the settings.", no_args_is_help=True)


@app.callback()
def config() -> None:
    """Show the settings."""


@app.command()
@told
def show(*, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Print each effective setting and its origin, including changes made at run time."""
    settings = load(file=config)
    given = _with_overrides(settings.given(), settings)
    printer = Printer(as_json=as_json)
    if printer.is_for_programs:
        printer.rows(given, (), _as_document)
    else:
        printer.text("\n".join(line for row in given for line in _lines(row)))


def _as_document(row: Given) -> dict[str, object]:
    return {"key": row.key, "value": shown_setting(row.key, row.raw), "origin": row.origin}


def _lines(row: Given) -> Iterator[str]:
    """A setting as in a settings file; named tables and rules have a line each."""
    raw = _typed(row)
    if isinstance(raw, dict) and raw:
        parts = [(f"{row.key}.{name}", each) for name, each in raw.items()]
    elif isinstance(raw, list) and raw:
        parts = [(f"{row.key}[{number}]", each) for number, each in enumerate(raw, 1)]
    else:
        parts = [(row.key, raw)]
    for key, each in parts:
        yield f"{key} = {_as_toml(each)}  # {row.origin}"


def _typed(row: Given) -> object:
    """The typed value; in variables and flags all values are text."""
    if isinstance(row.raw, str) and not isinstance(default_values().get(row.key, ""), str):
        with suppress(ValueError):
            return json.loads(row.raw)
    return shown_setting(row.key, row.raw)


def _as_toml(raw: object) -> str:
    match raw:
        case str():
            return json.dumps(raw, ensure_ascii=False)
        case bool():
            return str(raw).lower()
        case {**table}:
            inside = ", ".join(f"{name} = {_as_toml(each)}" for name, each in table.items())
            return f"{{ {inside} }}" if inside else "{}"
        case [*each]:
            return f"[{', '.join(map(_as_toml, each))}]"
        case _:
            return str(raw)


def _with_overrides(given: list[Given], settings: Settings) -> list[Given]:
    """The settings, with those that the store overrides for all workers, if it is reachable."""
    try:
        tuned = asyncio.run(tuned_fairness(settings))
    except CarteiroError as error:
        note(f"Changes made at run time cannot be read: {error}")
        return given
    changed = {} if tuned is None else {f"fairness.{k}": each for k, each in asdict(tuned).items()}
    return [
        Given(
            row.key, changed[row.key], f"run time, overrides {_as_toml(_typed(row))} ({row.origin})"
        )
        if row.key in changed
        else row
        for row in given
    ]

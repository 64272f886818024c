"""``carteiro config``: what is in force, and why."""

import asyncio
from dataclasses import asdict

import typer

from carteiro.cli.desk import told
from carteiro.cli.options import AsJson, ConfigFile
from carteiro.cli.printing import Column, Printer, note
from carteiro.config import Given, Settings, load, shown_setting
from carteiro.errors import CarteiroError
from carteiro.stores.open import tuned_fairness

app = typer.Typer(help="Look at the settings.", no_args_is_help=True)


def _as_written(row: Given) -> object:
    """As a settings file wants it."""
    return str(row.raw).lower() if isinstance(row.raw, bool) else shown_setting(row.key, row.raw)


_COLUMNS: tuple[Column[Given], ...] = (
    Column("setting", lambda row: row.key, is_whole=True),
    Column("value", _as_written),
    Column("from", lambda row: row.origin),
)


@app.callback()
def config() -> None:
    """Look at the settings."""


@app.command()
@told
def show(*, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Print each setting in force and where it came from; what was changed at run time, too."""
    settings = load(file=config)
    given = _with_overrides(settings.given(), settings)
    Printer(as_json=as_json).rows(
        given,
        _COLUMNS,
        lambda row: {
            "key": row.key,
            "value": shown_setting(row.key, row.raw),
            "origin": row.origin,
        },
    )


def _with_overrides(given: list[Given], settings: Settings) -> list[Given]:
    """The settings with those in their place that the store has for all workers, if it can be asked."""
    try:
        tuned = asyncio.run(tuned_fairness(settings))
    except CarteiroError as error:
        note(f"What was changed at run time cannot be read: {error}")
        return given
    changed = {} if tuned is None else {f"fairness.{k}": each for k, each in asdict(tuned).items()}
    return [
        Given(row.key, changed[row.key], f"run time, instead of {_as_written(row)} ({row.origin})")
        if row.key in changed
        else row
        for row in given
    ]

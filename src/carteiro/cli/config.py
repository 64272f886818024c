"""``carteiro config``: the effective settings, and their origins."""

import asyncio

import typer

from carteiro.cli.desk import told
from carteiro.cli.options import AsJson, ConfigFile
from carteiro.cli.printing import Printer, note
from carteiro.config import Given, Settings, load, shown_setting
from carteiro.config.effective import effective, lines
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
    given = _with_overrides(settings)
    printer = Printer(as_json=as_json)
    if printer.is_for_programs:
        printer.rows(given, (), _as_document)
    else:
        told = (f"{key} = {each}  # {row.origin}" for row in given for key, each in lines(row))
        printer.text("\n".join(told))


def _as_document(row: Given) -> dict[str, object]:
    return {"key": row.key, "value": shown_setting(row.key, row.raw), "origin": row.origin}


def _with_overrides(settings: Settings) -> list[Given]:
    """The settings, with those that the store overrides for all workers, if it is reachable."""
    try:
        tuned = asyncio.run(tuned_fairness(settings))
    except CarteiroError as error:
        note(f"Changes made at run time cannot be read: {error}")
        return settings.given()
    return effective(settings, tuned)

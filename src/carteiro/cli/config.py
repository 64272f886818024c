"""``carteiro config``: what is in force, and why."""

from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table

from carteiro.cli.options import ConfigFile
from carteiro.config import Given, load

app = typer.Typer(help="Look at the settings.", no_args_is_help=True)


@app.callback()
def config() -> None:
    """Look at the settings."""


@app.command()
def show(
    *,
    config: ConfigFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Print each setting in force and where it came from."""
    given = load(file=config).given()
    if as_json:
        typer.echo(_as_json(given))
    else:
        Console().print(_as_table(given))


def _as_json(given: list[Given]) -> bytes:
    shown = [{"key": each.key, "value": each.raw, "origin": each.origin} for each in given]
    return orjson.dumps(shown, default=str, option=orjson.OPT_INDENT_2)


def _as_table(given: list[Given]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("setting", no_wrap=True)
    for heading in ("value", "from"):
        table.add_column(heading, overflow="fold")
    for each in given:
        style = "dim" if each.origin == "default" else None
        table.add_row(each.key, _plain(each.raw), _plain(each.origin), style=style)
    return table


def _plain(value: object) -> str:
    """Brackets in a value are no markup."""
    return str(value).replace("[", r"\[")

"""``carteiro config``: what is in force, and why."""

import typer

from carteiro.cli.desk import told
from carteiro.cli.options import AsJson, ConfigFile
from carteiro.cli.printing import Column, Printer
from carteiro.config import Given, load, shown_setting

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
    """Print each setting in force and where it came from."""
    given = load(file=config).given()
    Printer(as_json=as_json).rows(
        given,
        _COLUMNS,
        lambda row: {
            "key": row.key,
            "value": shown_setting(row.key, row.raw),
            "origin": row.origin,
        },
    )

"""``carteiro config``: what is in force, and why."""

import typer

from carteiro.cli.desk import told
from carteiro.cli.options import AsJson, ConfigFile
from carteiro.cli.printing import Column, Printer
from carteiro.config import Given, load, without_password

app = typer.Typer(help="Look at the settings.", no_args_is_help=True)

_COLUMNS: tuple[Column[Given], ...] = (
    Column("setting", lambda row: row.key, is_whole=True),
    Column("value", lambda row: _as_written(row.raw)),
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
        lambda row: {"key": row.key, "value": without_password(row.raw), "origin": row.origin},
    )


def _as_written(value: object) -> object:
    """As a settings file wants it."""
    return str(value).lower() if isinstance(value, bool) else without_password(value)

"""The command line: one file per command, put together here."""

import sys
from typing import NoReturn

import typer

from carteiro.cli import config
from carteiro.cli.up import up
from carteiro.cli.version import version
from carteiro.cli.worker import worker
from carteiro.errors import CarteiroError, ConfigError

app = typer.Typer(
    name="carteiro",
    help="Delivers every message, or knows exactly why not.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # they print variables, and a variable may be a key or a body
)
app.command()(up)
app.command()(worker)
app.command()(version)
app.add_typer(config.app, name="config")


def main() -> None:
    """Run the command that the arguments name; an error of ours is one line, not a traceback."""
    try:
        app()
    except ConfigError as error:
        _fail(error, exit_code=2)
    except CarteiroError as error:
        _fail(error, exit_code=1)


def _fail(error: CarteiroError, *, exit_code: int) -> NoReturn:
    sys.stderr.write(f"carteiro: {error}\n")
    sys.exit(exit_code)

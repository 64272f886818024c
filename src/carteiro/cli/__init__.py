"""The command line: one file per command or group of commands, assembled here."""

from typing import Annotated

import typer

from carteiro.cli import (
    admin_token,
    config,
    dead,
    fairness,
    inbox,
    key,
    recipient,
    suppression,
    template,
    tenant,
    tickets,
)
from carteiro.cli.api import api
from carteiro.cli.backup import backup
from carteiro.cli.cancel import cancel
from carteiro.cli.classify import classify
from carteiro.cli.doctor import doctor
from carteiro.cli.erase import erase
from carteiro.cli.explain import explain
from carteiro.cli.faults import PlainGroup
from carteiro.cli.ls import ls
from carteiro.cli.migrate import migrate
from carteiro.cli.move import move
from carteiro.cli.process_due import process_due
from carteiro.cli.prune import prune
from carteiro.cli.send import send
from carteiro.cli.show import show
from carteiro.cli.stats import stats
from carteiro.cli.up import up
from carteiro.cli.version import version, version_and_end
from carteiro.cli.worker import worker

app = typer.Typer(
    name="carteiro",
    cls=PlainGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # they print variables, and a variable may be a key or a body
)


@app.callback()
def carteiro(
    *,
    _: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=version_and_end, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Deliver every message, or know exactly why not."""


_GROUPS = {
    "Messages": (dead, inbox, tickets),
    "Tenants": (tenant, fairness, key, admin_token, template, recipient, suppression),
    "Maintenance": (config,),
}
_COMMANDS = {
    "Run": (up, api, worker, process_due),
    "Messages": (send, show, explain, ls, cancel),
    "Tenants": (erase,),
    "Maintenance": (stats, classify, doctor, migrate, move, prune, backup, version),
}
for _panel, _groups in _GROUPS.items():
    for _group in _groups:
        _title = _group.__name__.rpartition(".")[2].replace("_", "-")
        app.add_typer(_group.app, name=_title, rich_help_panel=_panel)
for _panel, _commands in _COMMANDS.items():
    for _command in _commands:
        _name = "process" if _command is process_due else None
        app.command(_name, rich_help_panel=_panel)(_command)


def main() -> None:
    """Run the command given in the arguments."""
    app()

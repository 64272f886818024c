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


_RUN, _MESSAGES, _PEOPLE, _CARE = "Run", "Messages", "Tenants", "Care"

app.command(rich_help_panel=_RUN)(up)
app.command(rich_help_panel=_RUN)(api)
app.command(rich_help_panel=_RUN)(worker)
app.command("process", rich_help_panel=_RUN)(process_due)

app.command(rich_help_panel=_MESSAGES)(send)
app.command(rich_help_panel=_MESSAGES)(show)
app.command(rich_help_panel=_MESSAGES)(explain)
app.command(rich_help_panel=_MESSAGES)(ls)
app.command(rich_help_panel=_MESSAGES)(cancel)
app.add_typer(dead.app, name="dead", rich_help_panel=_MESSAGES)
app.add_typer(inbox.app, name="inbox", rich_help_panel=_MESSAGES)
app.add_typer(tickets.app, name="tickets", rich_help_panel=_MESSAGES)

app.add_typer(tenant.app, name="tenant", rich_help_panel=_PEOPLE)
app.add_typer(fairness.app, name="fairness", rich_help_panel=_PEOPLE)
app.add_typer(key.app, name="key", rich_help_panel=_PEOPLE)
app.add_typer(admin_token.app, name="admin-token", rich_help_panel=_PEOPLE)
app.add_typer(template.app, name="template", rich_help_panel=_PEOPLE)
app.add_typer(recipient.app, name="recipient", rich_help_panel=_PEOPLE)
app.add_typer(suppression.app, name="suppression", rich_help_panel=_PEOPLE)
app.command(rich_help_panel=_PEOPLE)(erase)

app.command(rich_help_panel=_CARE)(stats)
app.add_typer(config.app, name="config", rich_help_panel=_CARE)
app.command(rich_help_panel=_CARE)(classify)
app.command(rich_help_panel=_CARE)(doctor)
app.command(rich_help_panel=_CARE)(migrate)
app.command(rich_help_panel=_CARE)(move)
app.command(rich_help_panel=_CARE)(prune)
app.command(rich_help_panel=_CARE)(backup)
app.command(rich_help_panel=_CARE)(version)


def main() -> None:
    """Run the command given in the arguments."""
    app()

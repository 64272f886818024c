"""``carteiro tickets dlq``: tickets that died, and what to do about it."""

import typer

from carteiro.cli.tickets.dlq.look import group, ls, show
from carteiro.cli.tickets.dlq.mark import acknowledge, quarantine
from carteiro.cli.tickets.dlq.purge import purge
from carteiro.cli.tickets.dlq.republish import republish

app = typer.Typer(
    help="Look at archived dead tickets, republish them, set them apart.", no_args_is_help=True
)
for command in (ls, group, show, acknowledge, republish, purge, quarantine):
    app.command()(command)

"""``carteiro tickets dlq``: dead tickets in the archive."""

import typer

from carteiro.cli.tickets.dlq.look import group, ls, show
from carteiro.cli.tickets.dlq.mark import acknowledge, quarantine
from carteiro.cli.tickets.dlq.purge import purge
from carteiro.cli.tickets.dlq.republish import republish

app = typer.Typer(
    help="List, republish, quarantine and purge archived dead tickets.", no_args_is_help=True
)
for command in (ls, group, show, acknowledge, republish, purge, quarantine):
    app.command()(command)

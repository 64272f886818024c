"""``carteiro tickets dlq``: tickets that died, and what to do about it."""

import typer

from carteiro.cli.tickets.dlq.acknowledge import acknowledge
from carteiro.cli.tickets.dlq.look import group, ls, show
from carteiro.cli.tickets.dlq.purge import purge
from carteiro.cli.tickets.dlq.quarantine import quarantine
from carteiro.cli.tickets.dlq.republish import republish

app = typer.Typer(
    help="Look at archived dead tickets, send them round again, set them apart.",
    no_args_is_help=True,
)
app.command()(ls)
app.command()(group)
app.command()(show)
app.command()(acknowledge)
app.command()(republish)
app.command()(purge)
app.command()(quarantine)

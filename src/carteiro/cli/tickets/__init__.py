"""``carteiro tickets``: work from a Kafka topic, and its dead letters."""

import typer

from carteiro.cli.tickets import dlq
from carteiro.cli.tickets.archive import archive
from carteiro.cli.tickets.run import run

app = typer.Typer(
    help="Work on tickets of a Kafka topic, and handle dead ones.", no_args_is_help=True
)
app.command()(run)
app.command()(archive)
app.add_typer(dlq.app, name="dlq")

"""``carteiro tickets``: work that arrives on a Kafka topic, and what became of the dead."""

import typer

from carteiro.cli.tickets import dlq
from carteiro.cli.tickets.archive import archive
from carteiro.cli.tickets.run import run

app = typer.Typer(
    help="Work on tickets of a Kafka topic, and look after the dead.", no_args_is_help=True
)
app.command()(run)
app.command()(archive)
app.add_typer(dlq.app, name="dlq")

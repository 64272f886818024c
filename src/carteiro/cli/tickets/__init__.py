"""``carteiro tickets``: tickets of a Kafka topic, and their dead letters."""

import typer

from carteiro.cli.tickets import dlq
from carteiro.cli.tickets.archive import archive
from carteiro.cli.tickets.audit import audit
from carteiro.cli.tickets.run import run

app = typer.Typer(
    help="Process tickets of a Kafka topic, and manage dead tickets.", no_args_is_help=True
)
app.command()(run)
app.command()(archive)
app.command()(audit)
app.add_typer(dlq.app, name="dlq")

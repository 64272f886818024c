"""``carteiro dead``: dead letters, and what to do about them."""

import typer

from carteiro.cli.dead.edit import edit
from carteiro.cli.dead.files import export, import_
from carteiro.cli.dead.look import group, ls, show
from carteiro.cli.dead.purge import purge
from carteiro.cli.dead.redrive import redrive

app = typer.Typer(help="Show, edit and redrive dead letters.", no_args_is_help=True)
for command in (ls, show, group, edit, redrive, export, import_, purge):
    app.command(command.__name__.rstrip("_"))(command)

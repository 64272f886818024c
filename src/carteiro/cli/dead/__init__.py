"""``carteiro dead``: what could not be delivered, and what to do about it."""

import typer

from carteiro.cli.dead.edit import edit
from carteiro.cli.dead.files import export, import_
from carteiro.cli.dead.look import group, ls, show
from carteiro.cli.dead.purge import purge
from carteiro.cli.dead.redrive import redrive

app = typer.Typer(help="Look at dead letters, mend them and send them again.", no_args_is_help=True)
app.command()(ls)
app.command()(show)
app.command()(group)
app.command()(edit)
app.command()(redrive)
app.command()(export)
app.command("import")(import_)
app.command()(purge)

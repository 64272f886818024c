"""The command line: one file per command or group of commands, assembled here."""

from importlib import import_module
from typing import Annotated

import typer

from carteiro.cli.faults import PlainGroup
from carteiro.cli.version import version_and_end

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


# The modules of groups and of commands, by their panels in the help; a command has the name of its module.
_GROUPS = {
    "Messages": ("dead", "failures", "redrives", "inbox", "tickets"),
    "Tenants": ("tenant", "fairness", "key", "admin_token", "template", "recipient", "suppression"),
    "Maintenance": ("alerts", "audit", "config"),
}
_COMMANDS = {
    "Run": ("up", "api", "worker", "process_due"),
    "Messages": ("send", "show", "explain", "ls", "cancel"),
    "Tenants": ("erase",),
    "Maintenance": (
        "stats",
        "kpis",
        "classify",
        "doctor",
        "migrate",
        "move",
        "prune",
        "backup",
        "version",
    ),
}
for _panel, _names in _GROUPS.items():
    for _name in _names:
        _group = import_module(f"carteiro.cli.{_name}").app
        app.add_typer(_group, name=_name.replace("_", "-"), rich_help_panel=_panel)
for _panel, _names in _COMMANDS.items():
    for _name in _names:
        _command = getattr(import_module(f"carteiro.cli.{_name}"), _name)
        _title = "process" if _name == "process_due" else None
        app.command(_title, rich_help_panel=_panel)(_command)


def main() -> None:
    """Run the command given in the arguments."""
    app()

"""The command line: one file per command or group of commands, assembled here when one is asked for."""

from importlib import import_module
from typing import Annotated, Any

import typer

from carteiro.cli.faults import PlainGroup, without_panels
from carteiro.cli.version import version_and_end

# The modules of commands and of groups, by their panels in the help; each has the name of its module.
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
_GROUPS = {
    "Messages": ("dead", "failures", "redrives", "inbox", "tickets"),
    "Tenants": ("tenant", "fairness", "key", "admin_token", "template", "recipient", "suppression"),
    "Maintenance": ("alerts", "audit", "config", "verdicts"),
}
_PARTS = {
    "process" if module == "process_due" else module.replace("_", "-"): (module, panel)
    for panels in (_COMMANDS, _GROUPS)
    for panel, modules in panels.items()
    for module in modules
}


class Parts(PlainGroup):
    """All commands; a module is imported when its command is run, or all are listed."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - as Typer declares it
        """Return the names of all."""
        return list(_PARTS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - as Typer declares it
        """Return a command by its name."""
        if cmd_name in _PARTS and cmd_name not in self.commands:
            self.commands[cmd_name] = without_panels(_part(cmd_name))
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    name="carteiro",
    cls=Parts,
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


def _part(name: str) -> Any:  # noqa: ANN401 - a command as Typer makes it
    file, panel = _PARTS[name]
    module, alone = import_module(f"carteiro.cli.{file}"), typer.Typer()
    if file in _GROUPS.get(panel, ()):
        alone.add_typer(module.app, name=name, rich_help_panel=panel)
    else:
        alone.command(name, rich_help_panel=panel)(getattr(module, file))
    return typer.main.get_group(alone).commands[name]


def main() -> None:
    """Run the command given in the arguments."""
    app()

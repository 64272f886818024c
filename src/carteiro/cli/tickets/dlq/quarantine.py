"""``carteiro tickets dlq quarantine``: set tickets apart that must not go round again."""

from typing import Annotated

import typer

from carteiro.cli.options import Yes
from carteiro.cli.tickets.dlq.desk import (
    Choice,
    Desk,
    DryRun,
    Everything,
    Tickets,
    Why,
    at_the_archive,
    refuse_both,
)
from carteiro.cli.tickets.dlq.marking import Move, marked


@at_the_archive
async def quarantine(  # noqa: PLR0913 - a parameter per flag
    desk: Desk,
    tickets: Tickets = None,
    *,
    everything: Everything = False,
    release: Annotated[bool, typer.Option("--release", help="Let them go again.")] = False,
    why: Why = "",
    choice: Choice,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Set dead tickets apart: republish passes over them, also if they die again.

    For those that are invalid, and would only fail again. --release takes it back.
    """
    refuse_both(tickets, everything=everything)
    if release:
        move = Move("Release", "released", ("quarantined",), "dead")
    else:
        move = Move("Quarantine", "quarantined", ("dead", "acknowledged"), "quarantined")
    await marked(desk, move, tickets, choice, why=why, dry_run=dry_run, yes=yes)

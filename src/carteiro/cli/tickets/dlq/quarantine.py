"""``carteiro tickets dlq quarantine``: exclude tickets from republishing."""

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
    release: Annotated[bool, typer.Option("--release", help="End the quarantine.")] = False,
    why: Why = "",
    choice: Choice,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Quarantine dead tickets: republish skips them, even if they fail again.

    Use it for invalid tickets, which would only fail again. --release ends it.
    """
    refuse_both(tickets, everything=everything)
    if release:
        move = Move("Release", "released", ("quarantined",), "dead")
    else:
        move = Move("Quarantine", "quarantined", ("dead", "acknowledged"), "quarantined")
    await marked(desk, move, tickets, choice, why=why, dry_run=dry_run, yes=yes)

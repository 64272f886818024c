"""``carteiro tickets dlq acknowledge``: say that somebody has seen them."""

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

_MOVE = Move("Acknowledge", "acknowledged", ("dead",), "acknowledged")


@at_the_archive
async def acknowledge(  # noqa: PLR0913 - a parameter per flag
    desk: Desk,
    tickets: Tickets = None,
    *,
    everything: Everything = False,
    why: Why = "",
    choice: Choice,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Say that dead tickets are seen: their alert ends, and they do not count as waiting.

    Nothing else changes: they can be republished or quarantined. One that dies again is dead again.
    """
    refuse_both(tickets, everything=everything)
    await marked(desk, _MOVE, tickets, choice, why=why, dry_run=dry_run, yes=yes)

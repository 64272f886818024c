"""``carteiro tickets dlq purge``: take old tickets out of the archive, by hand."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from carteiro.cli.desk import confirm
from carteiro.cli.options import Yes, a_duration, in_words
from carteiro.cli.tickets.dlq.desk import Choice, Desk, DryRun, at_the_archive

OLD = timedelta(days=90)
_RETENTION = timedelta(days=30)  # of the topic


@at_the_archive
async def purge(
    desk: Desk,
    *,
    older_than: Annotated[
        timedelta,
        typer.Option(parser=a_duration, metavar="DURATION", help="Archived longer ago than."),
    ] = "90d",  # type: ignore[assignment] # as it would be written: Typer reads it
    choice: Choice,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Take dead tickets that were archived long ago out of the archive, for good.

    What is on its way again right now stays. What is younger than the topic keeps its records (30 days)
    would come back if the archive's group were ever set back.
    """
    end = datetime.now(UTC) - older_than
    wanted = choice.wanted(states=("dead", "redriven", "quarantined"))
    wanted = replace(wanted, before=min(end, wanted.before or end))
    count = await desk.archive.count(wanted)
    if dry_run:
        desk.out.answer({"purged": 0, "matching": count}, f"Would be taken out: {count}.")
        return
    young = "" if older_than >= _RETENTION else " Some may still be on the topic."
    confirm(f"Take out {count}, archived over {in_words(older_than)} ago?{young}", yes=yes)
    purged = await desk.archive.purge(wanted)
    desk.out.answer({"purged": purged, "matching": count}, f"Taken out: {purged}.")

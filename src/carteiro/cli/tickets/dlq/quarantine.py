"""``carteiro tickets dlq quarantine``: set tickets apart that must not go round again."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from carteiro.cli.desk import confirm, who
from carteiro.cli.exit_codes import NotNow
from carteiro.cli.options import Yes
from carteiro.cli.paging import pages
from carteiro.cli.progress import count_done
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
from carteiro.tickets.archived import State, Step, Wanted


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
    before: State = "quarantined" if release else "dead"
    after: State = "dead" if release else "quarantined"
    wanted = await desk.chosen(tickets, choice, (before,))
    what = "released" if release else "quarantined"
    matching = await desk.archive.count(replace(wanted, states=(before,)))
    if dry_run:
        desk.out.answer({what: 0, "matching": matching}, f"Would be {what}: {matching}.")
        return
    if everything:
        confirm(f"{'Release' if release else 'Quarantine'} {matching}?", yes=yes)
    count = await _marked(desk, wanted, before, after, Step(what, who(), why, datetime.now(UTC)))
    if tickets and count < len(set(tickets)):
        raise NotNow(f"{what}: {count} of {len(set(tickets))}; the others are not {before} now")
    desk.out.answer({what: count}, f"{what.capitalize()}: {count}.")


async def _marked(desk: Desk, wanted: Wanted, before: State, after: State, step: Step) -> int:
    count = 0
    with count_done(step.what) as tell:
        found = pages(
            lambda cursor, size: desk.archive.find(wanted, cursor=cursor, limit=size), limit=0
        )
        async for page, _ in found:
            fit = [each for each in page if each.state == before]
            count += len(await desk.archive.mark(fit, after, step))
            tell(count)
    return count

"""``carteiro tickets dlq acknowledge | quarantine``: put archived tickets into another state."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import typer

from carteiro.cli.desk import confirm, who
from carteiro.cli.exit_codes import NotNow
from carteiro.cli.options import Yes
from carteiro.cli.paging import pages
from carteiro.cli.progress import count_done
from carteiro.cli.tickets.dlq.session import (
    ArchiveSession,
    Choice,
    DryRun,
    Everything,
    TicketIds,
    Why,
    at_the_archive,
)
from carteiro.model import value
from carteiro.tickets.archive.document import ArchiveState, Step, Wanted


@value
class Move:
    """A change of state: its verb, its participle, the states before and the state after."""

    what: str
    done: str
    before: tuple[ArchiveState, ...]
    after: ArchiveState


_SEEN = Move("Acknowledge", "acknowledged", ("dead",), "acknowledged")
_QUARANTINE = Move("Quarantine", "quarantined", ("dead", "acknowledged"), "quarantined")
_RELEASE = Move("Release", "released", ("quarantined",), "dead")


@at_the_archive
async def acknowledge(  # noqa: PLR0913 - a parameter per flag
    session: ArchiveSession,
    tickets: TicketIds = None,
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
    await _mark(
        session, _SEEN, tickets, choice, everything=everything, why=why, dry_run=dry_run, yes=yes
    )


@at_the_archive
async def quarantine(  # noqa: PLR0913 - a parameter per flag
    session: ArchiveSession,
    tickets: TicketIds = None,
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
    move = _RELEASE if release else _QUARANTINE
    await _mark(
        session, move, tickets, choice, everything=everything, why=why, dry_run=dry_run, yes=yes
    )


async def _mark(  # noqa: PLR0913 - as the flags of the command say
    session: ArchiveSession,
    move: Move,
    tickets: Sequence[str] | None,
    choice: Choice,
    *,
    everything: bool,
    why: str,
    dry_run: bool,
    yes: bool,
) -> None:
    """Do it with these tickets, or with all that match, and say with how many."""
    wanted = await session.chosen(tickets, choice, move.before, everything=everything)
    matching = await session.archive.count(replace(wanted, states=move.before))
    if dry_run:
        session.out.answer(
            {move.done: 0, "matching": matching}, f"Would be {move.done}: {matching}."
        )
        return
    if not tickets:
        confirm(f"{move.what} {matching}?", yes=yes)
    count = await _marked(session, wanted, move, Step(move.done, who(), why, datetime.now(UTC)))
    if tickets and count < len(set(tickets)):
        asked, were = len(set(tickets)), " or ".join(move.before)
        raise NotNow(f"{move.done}: {count} of {asked}; the others are not {were} now")
    session.out.answer({move.done: count}, f"{move.done.capitalize()}: {count}.")


async def _marked(session: ArchiveSession, wanted: Wanted, move: Move, step: Step) -> int:
    count = 0
    with count_done(step.what) as tell:
        found = pages(partial(session.archive.find, wanted), limit=0)
        async for page, _ in found:
            fit = [each for each in page if each.state in move.before]
            count += len(await session.archive.mark(fit, move.after, step))
            tell(count)
    return count

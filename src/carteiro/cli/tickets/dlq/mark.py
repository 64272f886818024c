"""``carteiro tickets dlq acknowledge | quarantine``: put archived tickets into another state."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import typer

from carteiro.cli.desk import confirm
from carteiro.cli.exit_codes import NotNow
from carteiro.cli.paging import page_by_page
from carteiro.cli.tickets.dlq.session import ArchiveSession, Selection, Why, at_the_archive
from carteiro.model import value
from carteiro.runtime.acting import user
from carteiro.tickets.archive.document import Archived, ArchiveState, Step, Wanted


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
async def acknowledge(session: ArchiveSession, *, selection: Selection, why: Why = "") -> None:
    """Acknowledge dead tickets: their alert ends, and they do not count as waiting.

    They can still be republished or quarantined. A ticket that dies again is dead again.
    """
    await _mark(session, _SEEN, selection, why)


@at_the_archive
async def quarantine(
    session: ArchiveSession,
    *,
    selection: Selection,
    release: Annotated[bool, typer.Option("--release", help="Undo a quarantine.")] = False,
    why: Why = "",
) -> None:
    """Quarantine dead tickets: republish skips them, also if they die again.

    For invalid tickets that would only fail again. --release undoes it.
    """
    await _mark(session, _RELEASE if release else _QUARANTINE, selection, why)


async def _mark(session: ArchiveSession, move: Move, selection: Selection, why: str) -> None:
    """Change the selected tickets, and print their number."""
    asked = len(set(selection.tickets or ()))
    wanted = await session.chosen(selection, move.before)
    matching = await session.archive.count(replace(wanted, states=move.before))
    if selection.dry_run:
        session.out.answer(
            {move.done: 0, "matching": matching}, f"Would be {move.done}: {matching}."
        )
        return
    if not asked:
        confirm(f"{move.what} {matching}?", yes=selection.yes)
    told = {"state": move.after, "tickets": matching}
    await session.record(move.what.lower(), wanted, {"states": move.before}, **told)
    count = await _marked(session, wanted, move, Step(move.done, user(), why, datetime.now(UTC)))
    if count < asked:
        were = " or ".join(move.before)
        raise NotNow(f"{move.done}: {count} of {asked}; the others are not {were} now")
    session.out.answer({move.done: count}, f"{move.done.capitalize()}: {count}.")


async def _marked(session: ArchiveSession, wanted: Wanted, move: Move, step: Step) -> int:
    async def mark(page: list[Archived]) -> int:
        fit = [each for each in page if each.state in move.before]
        return len(await session.archive.mark(fit, move.after, step))

    return await page_by_page(step.what, partial(session.archive.find, wanted), mark)

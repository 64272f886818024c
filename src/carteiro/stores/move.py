"""Moves everything from one store to another: closes it, waits for jobs in flight, copies, counts, opens the target.

If killed anywhere, the same call continues where it stopped: the source stays closed and does not change, and each
page is stored together with the progress of the move.
"""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from uuid_utils import uuid7

from carteiro.errors import CannotMove
from carteiro.model import value
from carteiro.ports.moving import CARRIED, InFlight, Reached, Source, Target

_LOOK_AGAIN_S = 0.2


class Progress(Protocol):
    """Receives the progress of a move."""

    def waits(self, left: InFlight) -> None:
        """Report the number of jobs in flight at the source."""

    def carried(self, share: float) -> None:
        """Report the share of all rows that was copied, from 0 to 1."""


@value
class Moved:
    """Rows in the target now, by table; ``again``: the move had finished before."""

    counts: Mapping[str, int]
    again: bool


async def move(source: Source, target: Target, progress: Progress) -> Moved:
    """Move everything; the source stays closed and names the target."""
    departure = source.departure()
    _refuse_elsewhere(source, target)
    identity = str(uuid7()) if departure is None else departure.move
    reached = await target.begin(identity, source=source.name)
    if departure is None:
        source.begin(identity, to=target.name)
    while (left := source.close()) is not None:
        progress.waits(left)
        await asyncio.sleep(_LOOK_AGAIN_S)
    counts = source.counts()
    if reached is not None:
        done = sum(each.rows for each in reached.values())
        total = sum(counts[table] for table in CARRIED)  # contents come with their messages
        for table in CARRIED:
            so_far = reached.get(table, Reached())
            place, is_done = so_far.place, so_far.is_done
            while not is_done:
                page = source.page(table, place)
                await target.take(table, page)
                place, is_done = page.place, not page.rows
                done += len(page.rows)
                progress.carried(done / total if total else 1.0)
        await target.finish(counts)
    source.finish()
    return Moved(counts, again=departure is not None and departure.is_finished)


async def take_back(source: Source, target: Target) -> None:
    """Open the source again; `CannotMove` if the target has been used since."""
    departure = source.departure()
    if departure is None:
        raise CannotMove(f"{source.name} is open: there is no move to undo")
    _refuse_elsewhere(source, target)
    await target.abandon(departure.move)
    source.reopen()


def _refuse_elsewhere(source: Source, target: Target) -> None:
    departure = source.departure()
    if departure is not None and departure.to != target.name:
        text = (
            f"{source.name} moves to {departure.to}: continue that move, or undo it with "
            f"carteiro move --from {source.name} --to {departure.to} --reopen"
        )
        raise CannotMove(text)

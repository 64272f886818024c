"""Carries all that is in one store over to another: closes, waits for what is in flight, copies, counts, opens.

Killed anywhere, the same call goes on where it was: the source stays closed and does not change any
more, and each page is kept together with how far it reaches.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from uuid_utils import uuid7

from carteiro.errors import CannotMove
from carteiro.model import value
from carteiro.ports.moving import CARRIED, InFlight, Reached, Source, Target

_LOOK_AGAIN_S = 0.2


class Told(Protocol):
    """Who is told how it goes."""

    def waits(self, left: InFlight) -> None:
        """So much is in flight at the source."""
        ...

    def carried(self, share: float) -> None:
        """So much of all rows has gone over, from 0 to 1."""
        ...


@value
class Moved:
    """What is in the target now, by table; ``again``: it was there before."""

    counts: Mapping[str, int]
    again: bool


async def move(source: Source, target: Target, told: Told) -> Moved:
    """Carry everything over; the source stays closed and says where it went."""
    departure = source.departure()
    _refuse_elsewhere(source, target)
    identity = str(uuid7()) if departure is None else departure.move
    reached = await target.begin(identity, source=source.name)
    if departure is None:
        source.begin(identity, to=target.name)
    while (left := source.close()) is not None:
        told.waits(left)
        await asyncio.sleep(_LOOK_AGAIN_S)
    counts = source.counts()
    if reached is not None:
        await _carry(source, target, counts, reached, told.carried)
        await target.finish(counts)
    source.finish()
    return Moved(counts, again=departure is not None and departure.is_finished)


async def take_back(source: Source, target: Target) -> None:
    """Open the source again; `CannotMove` once something was done at the target."""
    departure = source.departure()
    if departure is None:
        raise CannotMove(f"{source.name} is open: there is nothing to take back")
    _refuse_elsewhere(source, target)
    await target.abandon(departure.move)
    source.reopen()


def _refuse_elsewhere(source: Source, target: Target) -> None:
    departure = source.departure()
    if departure is not None and departure.to != target.name:
        text = (
            f"{source.name} moves to {departure.to}: go on with that, or take it back with "
            f"carteiro move --from {source.name} --to {departure.to} --reopen"
        )
        raise CannotMove(text)


async def _carry(
    source: Source,
    target: Target,
    counts: Mapping[str, int],
    reached: Mapping[str, Reached],
    tell: Callable[[float], None],
) -> None:
    done, total = sum(each.rows for each in reached.values()), sum(counts.values())
    for table in CARRIED:
        so_far = reached.get(table, Reached())
        place, is_done = so_far.place, so_far.is_done
        while not is_done:
            page = source.page(table, place)
            await target.take(table, page)
            place, is_done = page.place, not page.rows
            done += len(page.rows)
            tell(done / total if total else 1.0)

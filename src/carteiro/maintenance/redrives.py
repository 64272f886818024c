"""Advances redrives, each by a page in turn: first their results, then the messages that the pace allows.

A crash loses nothing and sends nothing twice: a page and its record are one transaction.
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from datetime import timedelta
from enum import IntEnum
from typing import TypeAlias

from carteiro.maintenance.loop import PROCESS, run_led
from carteiro.model import ENDED_REDRIVES, Redrive, RedriveState, Via
from carteiro.observability import log
from carteiro.policy.ramp import MOST_WATCHED, PAGE, Go, Halt, judged, next_move, result_of
from carteiro.ports.dead_letters import DeadLetters
from carteiro.ports.redrives import Redrives
from carteiro.ports.upkeep import Upkeep
from carteiro.runtime.acting import acting_as, on_this_machine

_FORGOTTEN = 1000  # messages of an ended redrive, in one transaction
_SOON_MS = 1000
_ABANDONED = "Nobody resumed it in time."
_ONE_SHOT_TERM = timedelta(seconds=1)  # as in `expire`

OpenCircuits: TypeAlias = Callable[[], Awaitable[Collection[str]]]  # providers, by name


class WorkLeft(IntEnum):
    """The work that is left."""

    NOTHING = 0  # until there are results
    SOON = 1  # a rate allows the next message within a second
    MORE = 2


async def run_redrives(
    upkeep: Upkeep,
    redrives: Redrives,
    dead_letters: DeadLetters,
    open_circuits: OpenCircuits,
    *,
    every: timedelta = timedelta(seconds=1),
) -> None:
    """Advance redrives until cancelled."""

    async def page() -> bool:
        progress = await _advance_all(redrives, dead_letters, open_circuits)
        return progress is WorkLeft.MORE

    await run_led(upkeep, "redrives", page, every=every)


async def redrive_once(
    upkeep: Upkeep, redrives: Redrives, dead_letters: DeadLetters, open_circuits: OpenCircuits
) -> WorkLeft:
    """Advance each redrive once, unless another process leads this task; for one-shot processes."""
    if not await upkeep.lead("redrives", holder=PROCESS, term=_ONE_SHOT_TERM):
        return WorkLeft.NOTHING
    with acting_as(on_this_machine(Via.UPKEEP, "upkeep")):
        return await _advance_all(redrives, dead_letters, open_circuits)


async def _advance_all(
    redrives: Redrives, dead_letters: DeadLetters, open_circuits: OpenCircuits
) -> WorkLeft:
    """Advance each redrive by a page: none waits for the end of another, nor for its errors."""
    left = WorkLeft.NOTHING
    found = await redrives.due()
    is_open = frozenset(await open_circuits() if found else ())
    for each in found:
        try:
            left = max(left, await _advance(redrives, dead_letters, each, is_open))
        except Exception as error:  # noqa: BLE001 - as in `run_led`
            log.upkeep_failed(f"redrive {each.id}", error)
    return left


async def _advance(
    redrives: Redrives, dead_letters: DeadLetters, redrive: Redrive, is_open: Collection[str]
) -> WorkLeft:
    if redrive.state in ENDED_REDRIVES:
        has_more = await redrives.forget(redrive, limit=_FORGOTTEN)
        return WorkLeft.MORE if has_more else WorkLeft.NOTHING
    if redrive.state is not RedriveState.RUNNING:
        state = RedriveState.CANCELLED
        await redrives.set(redrive.id, state, reason=_ABANDONED, version=redrive.version)
        return WorkLeft.NOTHING
    now, watched = await redrives.watched(redrive, limit=MOST_WATCHED)
    results = [(each, result) for each in watched if (result := result_of(each, now)) is not None]
    known: Redrive | None = redrive
    if results:
        told = [(each.message, result) for each, result in results]
        known = await redrives.judge(redrive, told, judged(redrive.course, results))
    if known is None:  # somebody has changed it
        return WorkLeft.MORE
    trouble = {each.provider for each in watched if each.provider} & {*is_open}
    move = next_move(known.ramp, known.course, now, trouble)
    if isinstance(move, Go):
        after = known.course.cursor
        page = await dead_letters.find(known.wanted, cursor=after, limit=move.count, is_whole=False)
        course = replace(move.course, cursor=page.next, is_read=page.next is None)
        sent = await redrives.send(known, [each.id for each in page.rows], course)
        has_skipped = sent is not None and sent.course.skipped > course.skipped
        return WorkLeft.MORE if move.count == PAGE or has_skipped else WorkLeft.SOON
    if isinstance(move, Halt):
        state, reason = move.state, move.reason
        if await redrives.set(known.id, state, reason=reason, version=known.version) is not None:
            log.redrive_halted(known.id, state, reason)
        return WorkLeft.MORE if move.state is RedriveState.FINISHED else WorkLeft.NOTHING
    is_soon = move.ms is not None and move.ms <= _SOON_MS
    return WorkLeft.SOON if is_soon else WorkLeft.NOTHING

"""Advances redrives, each by a page in turn: first their results, then the messages that the pace allows.

A crash loses nothing and sends nothing twice: a page and its record are one transaction.
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from datetime import timedelta
from enum import IntEnum
from typing import TypeAlias

from carteiro.maintenance.loop import PROCESS, run_led
from carteiro.model import (
    ENDED_REDRIVES,
    AutomaticPlan,
    Course,
    MessageId,
    Redrive,
    RedriveState,
    Via,
    value,
)
from carteiro.observability import log
from carteiro.policy.ramp import MOST_WATCHED, PAGE, Go, Halt, judged, next_move, result_of
from carteiro.ports.automatic_redrives import AutomaticRedrives
from carteiro.ports.dead_letters import DeadLetters
from carteiro.ports.redrives import Redrives
from carteiro.ports.upkeep import Upkeep
from carteiro.runtime.acting import acting_as, on_this_machine

_FORGOTTEN = 1000  # messages of an ended redrive, in one transaction
_LEFT = 1000  # dead letters that an automatic redrive did not send, in one transaction
_SOON_MS = 1000
_ABANDONED = "Nobody resumed it in time."
_ONE_SHOT_TERM = timedelta(seconds=1)  # as in `expire`

OpenCircuits: TypeAlias = Callable[[], Awaitable[Collection[str]]]  # providers, by name


@value
class Redriving:
    """The things that redrives are advanced with: their ports, the open circuits, and the plan of automatic ones."""

    redrives: Redrives
    dead_letters: DeadLetters
    automatic: AutomaticRedrives
    open_circuits: OpenCircuits
    plan: AutomaticPlan = AutomaticPlan()


class WorkLeft(IntEnum):
    """The work that is left."""

    NOTHING = 0  # until there are results
    SOON = 1  # a rate allows the next message within a second
    MORE = 2


async def run_redrives(
    upkeep: Upkeep, redriving: Redriving, *, every: timedelta = timedelta(seconds=1)
) -> None:
    """Advance redrives until cancelled."""

    async def page() -> bool:
        return await _advance_all(redriving) is WorkLeft.MORE

    await run_led(upkeep, "redrives", page, every=every)


async def redrive_once(upkeep: Upkeep, redriving: Redriving) -> WorkLeft:
    """Advance each redrive once, unless another process leads this task; for one-shot processes."""
    if not await upkeep.lead("redrives", holder=PROCESS, term=_ONE_SHOT_TERM):
        return WorkLeft.NOTHING
    with acting_as(on_this_machine(Via.UPKEEP, "upkeep")):
        return await _advance_all(redriving)


async def _advance_all(redriving: Redriving) -> WorkLeft:
    """Advance each redrive by a page: none waits for the end of another, nor for its errors."""
    left = WorkLeft.NOTHING
    found = await redriving.redrives.due()
    is_open = frozenset(await redriving.open_circuits() if found else ())
    for each in found:
        try:
            left = max(left, await _advance(redriving, each, is_open))
        except Exception as error:  # noqa: BLE001 - as in `run_led`
            log.upkeep_failed(f"redrive {each.id}", error)
    return left


async def _advance(redriving: Redriving, redrive: Redrive, is_open: Collection[str]) -> WorkLeft:
    redrives = redriving.redrives
    if redrive.provider is not None and await _leave(redriving, redrive):
        return WorkLeft.MORE
    if redrive.state is RedriveState.RUNNING:
        return await _run(redriving, redrive, is_open)
    if redrive.state in ENDED_REDRIVES:
        has_more = await redrives.forget(redrive, limit=_FORGOTTEN)
        return WorkLeft.MORE if has_more else WorkLeft.NOTHING
    state = RedriveState.CANCELLED
    await redrives.set(redrive.id, state, reason=_ABANDONED, version=redrive.version)
    return WorkLeft.NOTHING


async def _run(redriving: Redriving, redrive: Redrive, is_open: Collection[str]) -> WorkLeft:
    redrives = redriving.redrives
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
        ids, course = await _next_page(redriving, known, move)
        sent = await redrives.send(known, ids, course)
        has_skipped = sent is not None and sent.course.skipped > course.skipped
        has_skipped |= not (ids or course.is_read)  # none of a page may be redriven automatically
        return WorkLeft.MORE if move.count == PAGE or has_skipped else WorkLeft.SOON
    if isinstance(move, Halt):
        state, reason = move.state, move.reason
        if state is RedriveState.PAUSED and known.provider is not None:
            state = RedriveState.FINISHED  # nobody would resume it: the others start another one
        if await redrives.set(known.id, state, reason=reason, version=known.version) is not None:
            log.redrive_halted(known.id, state, reason)
        return WorkLeft.MORE if move.state is RedriveState.FINISHED else WorkLeft.NOTHING
    is_soon = move.ms is not None and move.ms <= _SOON_MS
    return WorkLeft.SOON if is_soon else WorkLeft.NOTHING


async def _next_page(
    redriving: Redriving, redrive: Redrive, move: Go
) -> tuple[list[MessageId], Course]:
    """The next messages, and the course after them."""
    if redrive.provider is None:
        cursor = redrive.course.cursor
        page = await redriving.dead_letters.find(
            redrive.wanted, cursor=cursor, limit=move.count, is_whole=False
        )
        course = replace(move.course, cursor=page.next, is_read=page.next is None)
        return [each.id for each in page.rows], course
    if not redriving.plan.is_on:
        return [], replace(move.course, is_read=True)
    ids, has_more = await redriving.automatic.due(redrive, redriving.plan, limit=PAGE)
    has_more = has_more or len(ids) > move.count
    return ids[: move.count], replace(move.course, is_read=not has_more)


async def _leave(redriving: Redriving, redrive: Redrive) -> bool:
    """End an automatic redrive that stopped or was cancelled, a page of what it did not send; True if it did something.

    One that stopped has taken a round of them: they cool down. One that somebody cancelled has taken all.
    """
    automatic, plan = redriving.automatic, redriving.plan
    if redrive.state is RedriveState.CANCELLED:
        return await automatic.dismiss(redrive, plan, limit=_LEFT)
    if redrive.state is not RedriveState.STOPPED:
        return False
    if not await automatic.postpone(redrive, plan, limit=_LEFT):
        state, reason = RedriveState.FINISHED, redrive.reason
        await redriving.redrives.set(redrive.id, state, reason=reason, version=redrive.version)
    return True

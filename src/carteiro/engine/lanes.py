"""Calls of jobs: one task for all that end at once. A task for each would cost as much as half of its stages."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from sys import getrefcount
from typing import Any, cast

from carteiro.engine.run import Run
from carteiro.model import Outcome, Taken
from carteiro.path.deliver import TimeLimits, deliver, outcome_of
from carteiro.ports.provider import Handover, Parcel

_TURN_S = 0.01  # then others have a turn of the event loop
DONE: Outcome = Taken("")  # of a function that ended without an error


class Lanes:
    """Makes the calls of a worker; they ended with an outcome, or failed with an internal error."""

    def __init__(
        self,
        ended: Callable[[Sequence[Run]], None],
        failed: Callable[[Run, BaseException], None],
        *,
        give_up: asyncio.Event,
    ) -> None:
        self._ended = ended
        self._failed = failed
        self._give_up = give_up
        self._limits = TimeLimits()

    def call(self, runs: Sequence[Run]) -> None:
        """Call the jobs of a list one after the other, until one waits for something: the others have a task each then.

        So no job waits for another. Calls share a task only if they ended at once, and nothing that one leaves in it
        reaches the next: after context variables, a cancel or a reference to the task, which may be cancelled by it
        later, the others have a task each, too.
        """
        loop, left = asyncio.get_running_loop(), iter(runs)
        ended: list[Run] = []  # and not passed on yet
        task = loop.create_task(self._call_each(left, ended))
        for run in runs:
            run.task = task
            run.is_handed_on = True
        loop.call_soon(self._part, left, ended)  # it runs when that task waits, or has ended

    def _part(self, left: Iterator[Run], ended: list[Run]) -> None:
        """Give each that has not begun a task of its own; the first task has none left then."""
        self._pass_on(ended)
        loop = asyncio.get_running_loop()
        for run in left:
            if not self._give_up.is_set():
                run.task = loop.create_task(self._call_each(iter((run,)), []))

    def _pass_on(self, ended: list[Run]) -> None:
        if ended:
            self._ended(ended)
            ended.clear()

    async def _call_each(self, left: Iterator[Run], ended: list[Run]) -> None:
        task, context = cast("Any", asyncio.current_task()), copy_context()
        held = getrefcount(task)
        began = time.monotonic()
        turn_ends = began + _TURN_S
        try:
            for run in left:
                run.called_at = began
                function = run.kind.function
                try:
                    if function is None:
                        run.outcome = await self._delivered(run)
                    else:
                        await function(run.job.content)
                        run.outcome = DONE
                except BaseException as error:  # noqa: BLE001 - any error affects no other job
                    self._raised(run, error)
                run.ended_at = began = time.monotonic()
                if run.outcome is not None:
                    ended.append(run)
                is_cancelled = task._must_cancel  # noqa: SLF001 - `cancelling` does not say it after an `uncancel`
                is_marked = is_cancelled or copy_context() != context or getrefcount(task) > held
                if is_marked or began > turn_ends:
                    return
        finally:
            self._pass_on(ended)

    async def _delivered(self, run: Run) -> Outcome:
        job, kind, confirmed = run.job, run.kind, run.confirmed
        content = job.content if confirmed is None else confirmed.email
        parcel = run.parcel = Parcel(
            job.lease.job, job.tenant, content, run.attempt, job.revision, job.request_id
        )
        handover = run.handover = run.handover or Handover(kind.call_limit)
        outcome = await deliver(kind, parcel, handover, self._limits, run.task)
        if outcome is None:
            raise TypeError(f"{kind.name} has returned no outcome")
        return outcome

    def _raised(self, run: Run, error: BaseException) -> None:
        """Set the outcome of a call that raised; an error of ours is none. Raise what ends the worker."""
        is_closed = (
            type(error) is GeneratorExit
        )  # of an awaited thread: Python closes all that await it
        if is_closed and self._give_up.is_set():
            raise error
        try:
            if run.kind.function is None and not is_closed:  # `deliver` knows no outcome
                raise error  # noqa: TRY301 - as `outcome_of` does
            run.outcome = outcome_of(error, run.kind, run.handover or Handover(None))
        except asyncio.CancelledError:
            if self._give_up.is_set():
                raise
            self._failed(run, RuntimeError("the call has cancelled itself"))
        except Exception as internal:  # noqa: BLE001 - as above
            self._failed(run, internal)

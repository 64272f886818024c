"""Calls of jobs: one task for all that end at once. A task for each would cost as much as half of its stages."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextvars import copy_context
from sys import getrefcount
from typing import Any, cast

from carteiro.engine.run import Run

_TURN_S = 0.01  # then others have a turn of the event loop


class Lane:
    """Calls the jobs of a list one after the other, until one waits for something: the others have a task each then.

    So no job waits for another. Calls share a task only if they ended at once, and nothing that one leaves in it
    reaches the next: after context variables, a cancel or a reference to the task, which may be cancelled by it later,
    the others have a task each, too.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        call: Callable[[Run], Coroutine[Any, Any, None]],
        *,
        give_up: asyncio.Event,
    ) -> None:
        self._left = iter(runs)
        self._call = call
        self._give_up = give_up
        self._loop = asyncio.get_running_loop()
        task = self._loop.create_task(self._call_each())
        for run in runs:
            run.task = task

    async def _call_each(self) -> None:
        self._loop.call_soon(self._part)  # it runs when this task waits, or has ended
        task, context = cast("Any", asyncio.current_task()), copy_context()
        held = getrefcount(task)
        turn_ends = time.monotonic() + _TURN_S
        for run in self._left:
            await self._call(run)
            is_cancelled = task._must_cancel  # noqa: SLF001 - `cancelling` does not say it after an `uncancel`
            is_marked = is_cancelled or copy_context() != context or getrefcount(task) > held
            if is_marked or run.ended_at > turn_ends:
                return

    def _part(self) -> None:
        """Give each that has not begun a task of its own; the first task has none left then."""
        for run in self._left:
            if not self._give_up.is_set():
                run.task = self._loop.create_task(self._call(run))

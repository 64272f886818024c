"""Call the provider; there is always an outcome.

In: a declared attempt. Out: Taken, Rejected, Deferred, NotMade or Unknown. A crash here leaves the attempt
declared; the next worker finds it open: in doubt.
"""

import asyncio
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

from carteiro.errors import DeadlinePassed, DeliveryFailed
from carteiro.jobs.kind import Kind, Overrule
from carteiro.model import Deferred, Failure, NotMade, Outcome, Rejected, Unknown
from carteiro.observability import log
from carteiro.policy import classify
from carteiro.ports.provider import Handover, Parcel

_A_MOMENT = timedelta(seconds=1)  # the wait after a call that came too late


async def deliver(kind: Kind, parcel: Parcel, handover: Handover) -> Outcome:
    """Hand the parcel over within its deadline; the observer of the provider gets the outcome."""
    link = kind.link
    began = None if link is None else link.begin()
    try:
        if kind.call_limit is None:
            outcome = await kind.deliver(parcel, handover)
        else:
            outcome = await _within_limit(kind, parcel, handover)
    except BaseException as error:  # noqa: BLE001 - what is not an outcome is raised again
        outcome = outcome_of(error, kind, handover)
    if kind.overrule is not None:
        outcome = _overruled(kind.overrule, outcome)
    if link is not None and began is not None:
        link.heard(began, outcome)
    return outcome


async def _within_limit(kind: Kind, parcel: Parcel, handover: Handover) -> Outcome:
    limit = _TimeLimit(handover)
    handover.on_await(limit.moved)
    try:
        outcome = await kind.deliver(parcel, handover)
    except BaseException as error:
        if limit.end() and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from None
        raise
    limit.end()
    return outcome


class _TimeLimit:
    """Cancels the current task at the handover's deadline, as `asyncio.timeout` does, at a third of its cost.

    A later deadline does not touch the timer: when it fires too early, it is set again.
    """

    __slots__ = ("_fires_at", "_handover", "_has_passed", "_loop", "_task", "_timer")

    def __init__(self, handover: Handover) -> None:
        self._handover = handover
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task(self._loop)
        self._has_passed = False
        self._set_timer()

    def _set_timer(self) -> None:
        self._fires_at = self._handover.deadline
        self._timer = self._loop.call_later(self._fires_at - time.monotonic(), self._look)

    def _look(self) -> None:
        if self._fires_at < self._handover.deadline:
            self._set_timer()
            return
        self._has_passed = True
        self._handover.deadline = 0.0  # it cannot begin any more, in a thread either
        if self._task is not None:
            self._task.cancel()

    def moved(self) -> None:
        """The deadline has changed."""
        if self._handover.deadline < self._fires_at and not self._has_passed:
            self._timer.cancel()
            self._set_timer()

    def end(self) -> bool:
        """End it now; True if it has passed, and nothing else has cancelled the task."""
        self._timer.cancel()
        if not self._has_passed or self._task is None:
            return False
        return self._task.uncancel() == 0


def outcome_of(error: BaseException, kind: Kind, handover: Handover) -> Outcome:
    """The outcome of a call that raised; raises the error again if it is not the call's own."""
    own = type(error)  # not isinstance: it would run code of the error's own
    if issubclass(own, DeadlinePassed):
        return NotMade(classify.timeout(_type_of(kind.provider)), _A_MOMENT)
    if issubclass(own, DeliveryFailed):
        failure = classify.task_error(error)
        return Deferred(failure) if failure.retryable else Rejected(failure)
    if issubclass(own, TimeoutError):
        return _out_of_time(handover, _type_of(kind.provider))
    is_cancelled = issubclass(own, asyncio.CancelledError)
    if issubclass(own, KeyboardInterrupt) or (is_cancelled and _is_ours(asyncio.current_task())):
        raise error
    # A task may end itself, but not the process.
    return _unanswered(handover, classify.task_error(error))


def _overruled(overrule: Overrule, outcome: Outcome) -> Outcome:
    """Apply the operator's own rules to the outcome, also to a timeout that proves something."""
    try:
        return overrule(outcome)
    except Exception as error:  # noqa: BLE001 - the provider's own answer is kept
        log.unexpected("own rules", error)
        return outcome


def _type_of(provider: str) -> str:
    """The provider without its region: error codes do not depend on the region."""
    return provider.partition(":")[0]


def _is_ours(task: "asyncio.Task[Any] | None") -> bool:
    """True if this task is cancelled, and not something that the provider or task awaited."""
    return task is not None and task.cancelling() > 0


def _out_of_time(handover: Handover, provider: str) -> Outcome:
    failure = classify.timeout(provider)
    if not handover.is_queued:
        return _unanswered(handover, failure)
    reason = f"No connection or thread of {provider} was free"
    return NotMade(replace(failure, reason=reason), _A_MOMENT)


def _unanswered(handover: Handover, failure: Failure) -> Outcome:
    """Before the hand-over nothing was handed over; after it the result is unknown."""
    return Unknown(failure) if handover.begun else Deferred(failure)

"""Call the provider; there is always an outcome.

In: a declared attempt. Out: Taken, Rejected, Deferred, NotMade or Unknown. A crash here leaves the attempt
declared; the next worker finds it open: in doubt.
"""

import asyncio
import time
from dataclasses import replace
from datetime import timedelta
from math import inf
from typing import Any

from carteiro.errors import DeadlinePassed, DeliveryFailed
from carteiro.jobs.kind import Kind, Overrule
from carteiro.model import Deferred, Failure, NotMade, Outcome, Rejected, Unknown
from carteiro.observability import log
from carteiro.policy import classify
from carteiro.ports.provider import Handover, Parcel

_A_MOMENT = timedelta(seconds=1)  # the wait after a call that came too late


class TimeLimits:
    """Cancels calls at the deadlines of their handovers, as `asyncio.timeout` does, with one timer for all of them.

    A later deadline does not touch the timer: when it fires too early, it is set again.
    """

    def __init__(self) -> None:
        self._calls: dict[Handover, asyncio.Task[Any] | None] = {}  # until their deadline
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = inf

    def begin(self, handover: Handover, task: "asyncio.Task[Any] | None" = None) -> None:
        """Limit the current task until `end`; a caller that knows it saves the search for it."""
        self._calls[handover] = task or asyncio.current_task()
        handover.on_await(self._watch)
        if handover.deadline < self._fires_at:  # a call less for most
            self._watch(handover.deadline)

    def end(self, handover: Handover) -> bool:
        """End the limit; True if it has passed, and nothing else has cancelled the task."""
        if handover in self._calls:
            del self._calls[handover]
            return False
        task = asyncio.current_task()
        return task is not None and task.uncancel() == 0

    def _watch(self, deadline: float) -> None:
        if deadline < self._fires_at:
            if self._timer is not None:
                self._timer.cancel()
            self._fires_at = deadline
            wait = deadline - time.monotonic()
            self._timer = asyncio.get_running_loop().call_later(wait, self._look)

    def _look(self) -> None:
        now, self._timer, self._fires_at = time.monotonic(), None, inf
        for handover in [each for each in self._calls if each.deadline <= now]:
            handover.deadline = 0.0  # it cannot begin any more, in a thread either
            task = self._calls.pop(handover)
            if task is not None:
                task.cancel()
        if self._calls:
            self._watch(min(each.deadline for each in self._calls))


async def deliver(
    kind: Kind,
    parcel: Parcel,
    handover: Handover,
    limits: TimeLimits,
    task: "asyncio.Task[Any] | None" = None,
) -> Outcome:
    """Hand the parcel over within its deadline; the observer of the provider gets the outcome.

    ``task``: the current one, if it is known.
    """
    link, is_limited = kind.link, kind.call_limit is not None
    began = None if link is None else link.begin()
    if is_limited:
        limits.begin(handover, task)
    try:
        outcome = await kind.deliver(parcel, handover)
    except BaseException as error:  # noqa: BLE001 - what is not an outcome is raised again
        has_passed = is_limited and limits.end(handover)
        is_late = has_passed and issubclass(type(error), asyncio.CancelledError)
        outcome = outcome_of(TimeoutError() if is_late else error, kind, handover)
    else:
        if is_limited:
            limits.end(handover)
    if kind.overrule is not None:
        outcome = _overruled(kind.overrule, outcome)
    if link is not None and began is not None:
        link.heard(began, outcome)
    return outcome


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

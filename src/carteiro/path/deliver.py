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
from carteiro.jobs.kind import Kind
from carteiro.model import Deferred, Failure, NotMade, Outcome, Rejected, Unknown
from carteiro.observability import log
from carteiro.policy import classify
from carteiro.ports.provider import Handover, Parcel

_A_MOMENT = timedelta(seconds=1)  # the wait after a call that came too late


async def deliver(kind: Kind, parcel: Parcel, handover: Handover) -> Outcome:
    """Hand the parcel over within its deadline; the observer of the provider gets the outcome."""
    if kind.link is None:
        return await _ruled(kind, parcel, handover)
    began = kind.link.begin()
    outcome = await _ruled(kind, parcel, handover)
    kind.link.heard(began, outcome)
    return outcome


async def _ruled(kind: Kind, parcel: Parcel, handover: Handover) -> Outcome:
    """Apply the operator's own rules to the outcome, also to a timeout that proves something."""
    outcome = await _called(kind, parcel, handover)
    if kind.overrule is None:
        return outcome
    try:
        return kind.overrule(outcome)
    except Exception as error:  # noqa: BLE001 - the provider's own answer is kept
        log.unexpected("own rules", error)
        return outcome


async def _called(  # noqa: PLR0911 - one return per outcome
    kind: Kind, parcel: Parcel, handover: Handover
) -> Outcome:
    try:
        if kind.call_limit is None:
            return await kind.deliver(parcel, handover)
        async with asyncio.timeout(max(0.0, handover.deadline - time.monotonic())) as call:
            handover.on_await(lambda limit: call.reschedule(_in(limit)))
            return await kind.deliver(parcel, handover)
    except DeadlinePassed:
        return NotMade(classify.timeout(_type_of(kind.provider)), _A_MOMENT)
    except DeliveryFailed as said:
        return _said(said.failure)
    except (SystemExit, GeneratorExit) as error:  # a task may end itself, but not the process
        return _unanswered(handover, classify.task_error(error))
    except asyncio.CancelledError as error:
        if _is_ours(asyncio.current_task()):
            raise
        return _unanswered(handover, classify.task_error(error))
    except TimeoutError:
        return _out_of_time(handover, _type_of(kind.provider))
    except Exception as error:  # noqa: BLE001 - any error of a provider is a failure
        return _unanswered(handover, classify.task_error(error))


def _type_of(provider: str) -> str:
    """The provider without its region: error codes do not depend on the region."""
    return provider.partition(":")[0]


def _in(wait: timedelta) -> float:
    return asyncio.get_running_loop().time() + wait.total_seconds()


def _is_ours(task: "asyncio.Task[Any] | None") -> bool:
    """True if this task is cancelled, and not something that the provider or task awaited."""
    return task is not None and task.cancelling() > 0


def _said(failure: Failure) -> Outcome:
    code = classify.one_line(failure.code)
    said = replace(failure, code=code, reason=classify.one_line(failure.reason) or code)
    return Deferred(said) if failure.retryable else Rejected(said)


def _out_of_time(handover: Handover, provider: str) -> Outcome:
    failure = classify.timeout(provider)
    if not handover.is_queued:
        return _unanswered(handover, failure)
    reason = f"All connections to {provider} were in use"
    return NotMade(replace(failure, reason=reason), _A_MOMENT)


def _unanswered(handover: Handover, failure: Failure) -> Outcome:
    """Before the hand-over nothing was handed over; after it the result is unknown."""
    return Unknown(failure) if handover.begun else Deferred(failure)

"""Call the provider; whatever happens, an outcome comes back.

In: a declared attempt. Out: Taken, Rejected, Deferred, NotMade or Unknown. If we crash here the
attempt stays declared, and the next claimer finds it open: in doubt.
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

_A_MOMENT = timedelta(seconds=1)  # before a call that came too late is made again


async def deliver(kind: Kind, parcel: Parcel, handover: Handover) -> Outcome:
    """Hand the parcel over within the hand-over's deadline; whoever watches the provider hears how it went."""
    if kind.link is None:
        return await _ruled(kind, parcel, handover)
    began = kind.link.begin()
    outcome = await _ruled(kind, parcel, handover)
    kind.link.heard(began, outcome)
    return outcome


async def _ruled(kind: Kind, parcel: Parcel, handover: Handover) -> Outcome:
    """The outcome as the operator's own rules want it: a time-out that proves something is theirs, too."""
    outcome = await _called(kind, parcel, handover)
    if kind.overrule is None:
        return outcome
    try:
        return kind.overrule(outcome)
    except Exception as error:  # noqa: BLE001 - the provider's own answer stands
        log.unexpected("own rules", error)
        return outcome


async def _called(  # noqa: PLR0911 - one return an outcome
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
    except (SystemExit, GeneratorExit) as error:  # a task may end itself, not the process
        return _unanswered(handover, classify.task_error(error))
    except asyncio.CancelledError as error:
        if _is_ours(asyncio.current_task()):
            raise
        return _unanswered(handover, classify.task_error(error))
    except TimeoutError:
        return _out_of_time(handover, _type_of(kind.provider))
    except Exception as error:  # noqa: BLE001 - a provider that breaks is one more way to fail
        return _unanswered(handover, classify.task_error(error))


def _type_of(provider: str) -> str:
    """Without its region: an error's code does not depend on where it happened."""
    return provider.partition(":")[0]


def _in(wait: timedelta) -> float:
    return asyncio.get_running_loop().time() + wait.total_seconds()


def _is_ours(task: "asyncio.Task[Any] | None") -> bool:
    """Whether it is us who are cancelled, not something that the provider or task waited for."""
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
    """Before the hand-over nothing was handed over; after it nobody knows."""
    return Unknown(failure) if handover.begun else Deferred(failure)

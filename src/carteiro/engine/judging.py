"""Run the stages that only decide, so that no message blocks the others or crashes its worker.

`confirm_at_once` comes before the attempt. `confirm_slowly` follows for HTML that is long or may contain code: it is
checked in a separate thread, as Lexbor releases the interpreter while it parses. `judge_outcome` comes after the
attempt. An unexpected error in either is logged, and becomes a verdict on that message.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

from carteiro import model
from carteiro.email.message import Email
from carteiro.errors import InvalidMessage, StoreError
from carteiro.jobs.confirmation import Confirmation, Confirmed, NeedsCloserLook, Unfit, Unrendered
from carteiro.jobs.kind import Kind
from carteiro.observability import log
from carteiro.path.confirm import judge_closely, judge_rendered, unjudgeable, unrenderable
from carteiro.runtime.fair_thread import Turns

# One thread: the limits of `policy.html` make each check short, and tenants take turns.
_JUDGE = Turns(ThreadPoolExecutor(max_workers=1, thread_name_prefix="carteiro-judge"))


def confirm_at_once(kind: Kind, job: model.LeasedJob) -> Confirmation:
    """Validate the message of a job, as far as that takes no time."""
    if kind.confirm is None:
        raise TypeError(f"{kind.name} has nothing to confirm")
    try:
        return kind.confirm(job)
    except (StoreError, MemoryError):  # an error of the process, not of this message
        raise
    except Exception as error:  # noqa: BLE001 - any error here is about this message only
        log.unexpected("confirm", error)
        return unjudgeable()


async def confirm_slowly(
    kind: Kind, job: model.LeasedJob, found: Unrendered | NeedsCloserLook
) -> Confirmed | Unfit:
    """Render the message if need be, and check its HTML; raises only errors of the process, such as `StoreError`."""
    try:
        after = await _rendered(kind, job, found.email) if isinstance(found, Unrendered) else found
        if isinstance(after, NeedsCloserLook):
            return await _JUDGE.take(job.tenant, partial(judge_closely, job, after.email))
    except (StoreError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - as above
        log.unexpected("confirm", error)
        return unjudgeable()
    return after


def judge_outcome(outcome: model.Outcome, judge: Callable[[], model.Verdict]) -> model.Verdict:
    """Return the verdict on an attempt; a dead letter if judging fails, unless the provider took the message."""
    try:
        return judge()
    except Exception as error:
        if isinstance(outcome, model.Taken):
            raise
        log.unexpected("judge", error)
        is_in_doubt = isinstance(outcome, model.Unknown)
        reason = model.DeadReason.IN_DOUBT if is_in_doubt else model.DeadReason.PERMANENT_ERROR
        return model.Dead(reason, outcome.failure)


def replays_in(kind: Kind, job: model.LeasedJob, *, last: str | None) -> timedelta:
    """The time for which the provider surely still recognizes the key of this message.

    Counted from the message's id, which is older than its first call. A key that was ``last`` used with
    another provider is known only there.
    """
    made = model.made_at(job.lease.job)
    if kind.replays_for is None or made is None or last not in {None, kind.provider}:
        return model.ZERO
    return kind.replays_for - timedelta(seconds=time.time() - made)


async def _rendered(
    kind: Kind, job: model.LeasedJob, email: Email
) -> Confirmed | Unfit | NeedsCloserLook:
    """Render and validate an e-mail that was accepted by SQL, with the current template."""
    if kind.render is None:
        raise TypeError(f"{kind.name} cannot render")
    try:
        rendered = await kind.render(email, tenant=job.tenant, message=job.lease.job)
        return judge_rendered(job, rendered)
    except InvalidMessage as error:
        return unrenderable(error)

"""Run the stages that only decide, so that no message blocks the others or crashes its worker.

`confirm_job` comes before the attempt: HTML that is long or may contain code is checked in a separate
thread, as Lexbor releases the interpreter while it parses. `judge_outcome` comes after the attempt. An
unexpected error in either is logged, and becomes a verdict on that message.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from carteiro.email.message import Email
from carteiro.errors import InvalidMessage, StoreError
from carteiro.jobs.confirmation import Confirmed, NeedsCloserLook, Unfit, Unrendered
from carteiro.jobs.kind import Kind
from carteiro.model import Dead, DeadReason, LeasedJob, Outcome, Taken, Unknown, Verdict
from carteiro.observability import log
from carteiro.path.confirm import judge_closely, judge_rendered, unjudgeable, unrenderable
from carteiro.runtime.fair_thread import Turns

# One thread: the limits of `policy.html` make each check short, and tenants take turns.
_JUDGE = Turns(ThreadPoolExecutor(max_workers=1, thread_name_prefix="carteiro-judge"))


async def confirm_job(kind: Kind, job: LeasedJob) -> Confirmed | Unfit | None:
    """Validate the message of a job; raises only errors of the process, such as `StoreError`."""
    try:
        return await _confirmed(kind, job)
    except (StoreError, MemoryError):  # an error of the process, not of this message
        raise
    except Exception as error:  # noqa: BLE001 - any error here is about this message only
        log.unexpected("confirm", error)
        return unjudgeable()


def judge_outcome(outcome: Outcome, judge: Callable[[], Verdict]) -> Verdict:
    """Return the verdict on an attempt; a dead letter if judging fails, unless the provider took the message."""
    try:
        return judge()
    except Exception as error:
        if isinstance(outcome, Taken):
            raise
        log.unexpected("judge", error)
        is_in_doubt = isinstance(outcome, Unknown)
        reason = DeadReason.IN_DOUBT if is_in_doubt else DeadReason.PERMANENT_ERROR
        return Dead(reason, outcome.failure)


async def _confirmed(kind: Kind, job: LeasedJob) -> Confirmed | Unfit | None:
    if kind.confirm is None:
        return None
    found = kind.confirm(job)
    if isinstance(found, Unrendered):
        found = await _rendered(kind, job, found.email)
    if isinstance(found, NeedsCloserLook):
        return await _JUDGE.take(job.tenant, partial(judge_closely, job, found.email))
    return found


async def _rendered(
    kind: Kind, job: LeasedJob, email: Email
) -> Confirmed | Unfit | NeedsCloserLook:
    """Render and validate an e-mail that was accepted by SQL, with the current template."""
    if kind.render is None:
        raise TypeError(f"{kind.name} cannot render")
    try:
        return judge_rendered(job, await kind.render(email, tenant=job.tenant))
    except InvalidMessage as error:
        return unrenderable(error)

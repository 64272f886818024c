"""The stages that only judge, so that no message stops the others or crashes its worker.

`confirm_job` comes before the attempt: HTML that may run something, or is long, is judged in a thread of
its own; Lexbor releases the interpreter while it parses. `judge_outcome` comes after the attempt. An
unexpected error in either is logged, and is a verdict on that message.
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

# One thread: the bounds of `policy.html` make each judgement short, and tenants take turns.
_JUDGE = Turns(ThreadPoolExecutor(max_workers=1, thread_name_prefix="carteiro-judge"))


async def confirm_job(kind: Kind, job: LeasedJob) -> Confirmed | Unfit | None:
    """Judge the message of a job; raises only errors that are not about it, such as `StoreError`."""
    try:
        return await _confirmed(kind, job)
    except (StoreError, MemoryError):  # about the process, not about this message
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is about this message alone
        log.unexpected("confirm", error)
        return unjudgeable()


def judge_outcome(outcome: Outcome, judge: Callable[[], Verdict]) -> Verdict:
    """The verdict on an attempt; a dead letter if judging fails, unless the provider took the message."""
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
    """Judge an e-mail that was put in by SQL, which cannot render: the template is as it is now."""
    if kind.render is None:
        raise TypeError(f"{kind.name} cannot render")
    try:
        return judge_rendered(job, await kind.render(email, tenant=job.tenant))
    except InvalidMessage as error:
        return unrenderable(error)

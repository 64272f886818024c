"""What is learnt of a message once its attempt is settled.

In: the end of an attempt and the ledger's answer. Out: log lines and figures. A result that came
late is kept by the ledger as evidence; here it is told to whoever watches. If we crash here, no more
than a line of the log is lost.
"""

from dataclasses import replace

from carteiro.model import (
    Dead,
    DeadReason,
    End,
    Late,
    LeasedJob,
    Retry,
    Sent,
    Settled,
    State,
    value,
)
from carteiro.path.judge import doubts
from carteiro.policy.lifecycle import filed_under
from carteiro.telemetry import log
from carteiro.telemetry.metrics.tally import Tally


@value
class Attempt:
    """What the log says of an attempt beside its message; ``number`` None: none was made."""

    number: int | None
    provider: str
    max_attempts: int


def track(job: LeasedJob, end: End, answer: Settled | Late, attempt: Attempt, tally: Tally) -> None:
    """Tell what became of the attempt, as the ledger has it."""
    number = job.attempts if attempt.number is None else attempt.number
    if isinstance(answer, Late):
        log.result_late(job, attempt=number, state=answer.state)
        return
    tally.settled(job, end, answer.state, attempt.number)
    if end.in_doubt and not isinstance(end.verdict, Sent):
        log.attempt_in_doubt(job, end.verdict.failure, attempt=number)
    if attempt.number is not None:
        log.attempt_finished(
            job,
            attempt=number,
            state=answer.state,
            duration=end.duration,
            provider=attempt.provider,
        )
    match answer.state, end.verdict:
        case State.RETRY_SCHEDULED, Retry() as retry:
            tally.retried(job, retry)
            log.retry_scheduled(
                job,
                retry,
                attempt=number,
                max_attempts=attempt.max_attempts,
                is_in_doubt=end.in_doubt > 0,
            )
        case State.FAILED | State.EXPIRED, Dead() as dead:
            _died(job, end, dead, tally, state=answer.state, attempt=number)
        case State.EXPIRED, Retry(failure=failure):  # the ledger's clock knew better
            dead = Dead(DeadReason.EXPIRED, failure)
            _died(job, end, dead, tally, state=answer.state, attempt=number)
        case _:  # sent or cancelled, whatever the verdict was: the attempt's own line says it
            pass


def _died(  # noqa: PLR0913 - what died, of what, and who is told
    job: LeasedJob, end: End, dead: Dead, tally: Tally, *, state: State, attempt: int
) -> None:
    """Tell of a dead letter under the reason that the ledger filed it."""
    reason = filed_under(dead.reason, in_doubt=doubts(job) + end.in_doubt)
    filed = replace(dead, reason=reason)
    tally.died(job, filed)
    log.message_died(job, filed, attempt=attempt, state=state)

"""What is learnt of a message once its attempt is settled.

In: the end of an attempt and the ledger's answer. Out: log lines. A result that came late is kept
by the ledger as evidence; here it is told to whoever watches. If we crash here, no more than a line
of the log is lost.
"""

from carteiro.model import Dead, DeadReason, End, Late, LeasedJob, Retry, Sent, Settled, value
from carteiro.telemetry import log


@value
class Attempt:
    """What the log says of an attempt beside its message."""

    number: int
    provider: str
    max_attempts: int


def track(job: LeasedJob, end: End, answer: Settled | Late, attempt: Attempt) -> None:
    """Tell what became of the attempt, as the ledger has it."""
    if isinstance(answer, Late):
        log.result_late(job, attempt=attempt.number, state=answer.state)
        return
    if not isinstance(end.verdict, Sent) and end.in_doubt:
        log.attempt_in_doubt(job, end.verdict.failure, attempt=attempt.number)
    if was_made(end):
        log.attempt_finished(
            job,
            attempt=attempt.number,
            state=answer.state,
            duration=end.duration,
            provider=attempt.provider,
        )
    match end.verdict:
        case Retry() as retry if was_made(end):
            log.retry_scheduled(
                job, retry, attempt=attempt.number, max_attempts=attempt.max_attempts
            )
        case Dead() as dead:
            log.message_died(job, dead, attempt=attempt.number, state=answer.state)
        case _:
            pass


def was_made(end: End) -> bool:
    """Whether the end is that of an attempt, not of a job that was never run."""
    match end.verdict:
        case Dead(reason):
            return reason in {DeadReason.MAX_ATTEMPTS_EXCEEDED, DeadReason.PERMANENT_ERROR}
        case _:
            return True

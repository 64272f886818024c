"""Record the results after an attempt is settled, and later: late results, refusals, feedback.

In: the end of an attempt with the ledger's answer, or a later report of a provider. Out: log lines and
metrics, events on its timeline, suppressed addresses. The ledger records late results and reports as
evidence. A crash here loses at most a log line and a suppression; the next message to that address gets the
same refusal. A provider repeats its report until we answer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from carteiro import model
from carteiro.email.message import Email
from carteiro.errors import StoreError
from carteiro.observability import log
from carteiro.observability.metrics.tally import Tally
from carteiro.path.judge import doubts
from carteiro.policy import consequences
from carteiro.policy.addresses import named_in
from carteiro.policy.lifecycle import filed_under
from carteiro.policy.rules.ruling import Suppression
from carteiro.policy.stage import Stage
from carteiro.ports.provider import Parcel
from carteiro.ports.suppressions import Suppressions
from carteiro.ports.tracking import Tracking

_SECOND = timedelta(seconds=1)
_ONE_CLICK = "one-click"  # in place of a provider
_REASONS = {
    Suppression.HARD: model.SuppressionReason.HARD_BOUNCE,
    Suppression.SOFT: model.SuppressionReason.SOFT_BOUNCE,
}


@model.value
class Attempt:
    """Log fields of an attempt, in addition to those of its message; ``number`` None: no attempt was made."""

    number: int | None
    provider: str
    max_attempts: int


def track(
    job: model.LeasedJob,
    end: model.End,
    answer: model.Settled | model.Late,
    attempt: Attempt,
    tally: Tally,
) -> None:
    """Log and count the result of the attempt, as the ledger stored it."""
    number = job.attempts if attempt.number is None else attempt.number
    if isinstance(answer, model.Late):
        log.result_late(job, attempt=number, state=answer.state, duration=end.duration)
        return
    tally.settled(job, end, answer.state, attempt.number)
    if end.in_doubt and not isinstance(end.verdict, model.Sent):
        log.attempt_in_doubt(job, end.verdict.failure, attempt=number, duration=end.duration)
    if attempt.number is not None:
        log.attempt_finished(
            job, end, attempt=number, state=answer.state, provider=attempt.provider
        )
    match answer.state, end.verdict:
        case model.State.RETRY_SCHEDULED, model.Retry() as retry:
            tally.retried(job, retry)
            log.retry_scheduled(job, retry, end, attempt=number, max_attempts=attempt.max_attempts)
            return
        case model.State.FAILED | model.State.EXPIRED, model.Dead() as dead:
            pass
        case model.State.EXPIRED, model.Retry(failure=failure):  # decided by the ledger's clock
            dead = model.Dead(model.DeadReason.EXPIRED, failure)
        case _:  # sent or cancelled, regardless of the verdict: the line of the attempt is enough
            return
    reason = filed_under(dead.reason, in_doubt=doubts(job) + end.in_doubt)
    filed = replace(dead, reason=reason)  # as in the ledger
    tally.died(job, filed)
    log.message_died(job, filed, attempt=number, state=answer.state, duration=end.duration)


def track_sent(
    jobs: Sequence[model.LeasedJob],
    numbers: Sequence[int],
    ends: Sequence[model.End],
    tally: Tally,
) -> None:
    """As `track`, for attempts (their ``numbers``) that were made and sent, none of them in doubt."""
    tally.sent(jobs, numbers, [end.duration / _SECOND for end in ends])
    log.attempts_sent(jobs, numbers, ends)


async def learn_refusals(
    parcel: Parcel, outcome: model.Outcome, verdict: model.Verdict, *, suppressions: Suppressions
) -> None:
    """Suppress permanently refused addresses, or count their soft bounces."""
    told = [
        model.NewSuppression(address, _REASONS[said])
        for address, failure in _refused(parcel, outcome, verdict)
        if (said := consequences.suppression(failure)) in _REASONS
    ]
    try:
        if told:
            await suppressions.put(told, tenant=parcel.tenant)
    except StoreError as error:
        log.store_failed("suppress", error, wait=model.ZERO)


def _refused(
    parcel: Parcel, outcome: model.Outcome, verdict: model.Verdict
) -> Iterator[tuple[str, model.Failure]]:
    """The refused addresses: refused copies, and the address behind the failure that ended a message."""
    if isinstance(outcome, model.Taken):
        yield from outcome.refused
    elif isinstance(verdict, model.Dead):
        whom = _address_of(parcel.content, verdict.failure)
        if whom is not None:
            yield whom, verdict.failure


def _address_of(email: Email, failure: model.Failure) -> str | None:
    """The address that a failure is about: the only one, or the one it names; None: unknown."""
    addresses = {each.casefold(): each for each in (*email.bcc, *email.cc, email.to)}
    if len(addresses) == 1 or failure.rule.endswith(f"@{Stage.RCPT}"):
        return email.to
    named = named_in(failure.reason, addresses.values())
    return named[0] if len(named) == 1 else None


async def unsubscribe(
    link: model.UnsubscribeLink, *, tracking: Tracking, tally: Tally
) -> model.NoteAnswer:
    """Suppress the recipient who used a link, for its tenant; log and count it."""
    answer = await tracking.unsubscribe(link)
    tally.heard(_ONE_CLICK, model.EventType.UNSUBSCRIBED, answer)
    log.unsubscribed(link, answer)
    return answer


async def hear(
    told: model.Feedback | None, *, provider: str, tracking: Tracking, tally: Tally
) -> model.NoteAnswer:
    """Record a later report of a provider, log and count it; ``told`` None: it is not about our mail."""
    [answer] = [model.NoteAnswer.UNKNOWN] if told is None else await tracking.note([told])
    tally.heard(provider, None if told is None else told.type, answer)
    if told is not None and answer is model.NoteAnswer.RESOLVED:
        log.doubt_resolved(told)
    if told is not None and answer is model.NoteAnswer.IGNORED:
        log.feedback_ignored(told)
    return answer

"""Decide on a message: after an attempt, and before an attempt that may have to be skipped.

In: the outcome of an attempt, or a job just claimed. Out: a verdict. Pure: no clock, no
randomness, no I/O; ``chance`` in [0, 1) comes from the caller. A crash here leaves nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import assert_never

from carteiro import model
from carteiro.policy import classify
from carteiro.policy.fairness import SUSPECT_CLAIMS
from carteiro.policy.lessons import Lesson
from carteiro.policy.lifecycle import EXPIRED_UNSENT
from carteiro.policy.patience import wait_after
from carteiro.policy.retry import RetryPolicy

_LONGEST_UNMADE = timedelta(minutes=1)
MOST_CLAIMS = 5  # workers that may die on a message before it is given up


def judge(  # noqa: PLR0911, PLR0913 - one return per outcome; each argument matters
    outcome: model.Outcome,
    *,
    provider: str,
    charged_before: int,
    in_doubt_before: int,
    delivery: model.Delivery,
    policy: RetryPolicy,
    expires_in: timedelta,
    chance: float,
    replays_in: timedelta = model.ZERO,
    elsewhere: timedelta | None = None,
    lesson: Lesson | None = None,
) -> model.Verdict:
    """Turn the outcome of an attempt into a verdict.

    ``charged_before`` and ``in_doubt_before`` (see `doubts`) do not include this outcome.
    ``replays_in``: the time for which the provider still recognizes the key of the call.
    ``elsewhere``: the time until another provider can be tried. Then a fault of this provider is not
    charged and not final: each provider is tried once before the wait of the policy.
    ``lesson``: what history says about this failure; it ends no doubt.
    """
    if elsewhere is not None and isinstance(
        outcome, model.Rejected | model.Deferred | model.NotMade
    ):
        return _retry(elsewhere, outcome.failure, charged=False, expires_in=expires_in)
    match outcome:
        case model.Taken(provider_id):
            return model.Sent(provider, classify.one_line(provider_id))
        case model.Rejected(failure):
            return model.Dead(model.DeadReason.PERMANENT_ERROR, failure, charged=True)
        case model.Deferred():
            verdict = _deferred(outcome, charged_before, policy, expires_in, chance)
            if lesson is None or isinstance(verdict, model.Dead):
                return verdict
            failed = charged_before + verdict.charged
            return _wiser(verdict, lesson, policy.later_delays(failed, chance), expires_in)
        case model.NotMade(failure, wait):
            soon = min(wait, _LONGEST_UNMADE)  # a longer wait may be wrong: ask again soon
            return _retry(soon, failure, charged=False, expires_in=expires_in)
        case model.Unknown(failure):
            in_doubt = in_doubt_before + 1
            wait = policy.delay(charged_before + in_doubt_before, chance)
            if not _may_send_again(in_doubt, delivery, policy, is_replay=wait < replays_in):
                return model.Dead(model.DeadReason.IN_DOUBT, failure)
            return _retry(wait, failure, charged=False, expires_in=expires_in)
        case _:
            assert_never(outcome)


def judge_claim(
    job: model.LeasedJob, policy: RetryPolicy, *, replays_in: timedelta = model.ZERO
) -> model.Dead | None:
    """Decide on a claimed job before it runs; None: run it.

    Doubt comes first, as a resend does not depend on the rest. It is decided at each claim: a
    planned replay may come too late. A message that kills workers comes before its expiry, so
    that a human learns of it.
    """
    is_replay = replays_in > model.ZERO
    if doubts(job) and not _may_send_again(doubts(job), job.delivery, policy, is_replay=is_replay):
        return model.Dead(model.DeadReason.IN_DOUBT, classify.in_doubt())
    if _undeclared_claims(job) > MOST_CLAIMS:
        return model.Dead(model.DeadReason.CRASHES_WORKER, classify.crashes_worker(job.claims - 1))
    if job.expires_in <= model.ZERO:
        return model.Dead(model.DeadReason.EXPIRED, EXPIRED_UNSENT)
    return None


def are_plain(jobs: Sequence[model.LeasedJob]) -> bool:
    """True if nothing happened to any of the jobs yet and none has expired: `judge_claim` would let all run."""
    return (
        not [  # without a call for each
            True
            for job in jobs
            if job.claims != 1
            or job.in_doubt
            or job.open_attempt
            or job.cancel_requested
            or job.expires_in <= model.ZERO
        ]
    )


def may_kill(job: model.LeasedJob) -> bool:
    """True if the job must run alone: its last workers died or hung.

    A job with too many claims is not run at all, so it need not be alone.
    """
    return job.claims > SUSPECT_CLAIMS and _undeclared_claims(job) <= MOST_CLAIMS


def is_orphan(job: model.LeasedJob) -> bool:
    """True if its last worker did not end it: it killed that worker, or was with a job that did."""
    return 1 < job.claims <= SUSPECT_CLAIMS


def doubts(job: model.LeasedJob) -> int:
    """The number of unknown outcomes of this round, including the open attempt."""
    return job.in_doubt + job.open_attempt


def _deferred(
    outcome: model.Deferred,
    charged_before: int,
    policy: RetryPolicy,
    expires_in: timedelta,
    chance: float,
) -> model.Retry | model.Dead:
    charged = policy.charges(outcome.failure)
    failed = charged_before + charged
    if failed >= policy.max_attempts:
        return model.Dead(model.DeadReason.MAX_ATTEMPTS_EXCEEDED, outcome.failure, charged=charged)
    # A header may be wrong, or from a proxy: it ends no message that has time left.
    asked = outcome.retry_after if outcome.retry_after < expires_in else model.ZERO
    wait = max(policy.delay(failed, chance), asked)
    if policy.is_patient:
        longer = max(wait, wait_after(policy, outcome.failure, failed, chance))
        wait = longer if longer < expires_in else wait  # a longer wait must not expire the message
    return _retry(wait, outcome.failure, charged=charged, expires_in=expires_in)


def _wiser(
    verdict: model.Retry, lesson: Lesson, later: Iterable[timedelta], expires_in: timedelta
) -> model.Retry | model.Dead:
    """The verdict, unless history says that retries are in vain, or that this one comes too early."""
    if lesson.in_vain is not None:
        reason = model.DeadReason.MAX_ATTEMPTS_EXCEEDED
        return model.Dead(reason, verdict.failure, charged=verdict.charged, learned=lesson.in_vain)
    longer = lesson.instead_of(verdict.after, later)
    if longer is None or longer[0] >= expires_in:  # a longer wait must not expire the message
        return verdict
    wait, learned = longer
    return replace(verdict, after=wait, learned=learned)


def _may_send_again(
    in_doubt: int, delivery: model.Delivery, policy: RetryPolicy, *, is_replay: bool
) -> bool:
    """A replay is not a second delivery: it is always allowed, within the retries of the policy."""
    if is_replay:
        return in_doubt < policy.max_attempts
    return delivery is model.Delivery.AT_LEAST_ONCE and in_doubt <= policy.max_in_doubt_resends


def _undeclared_claims(job: model.LeasedJob) -> int:
    """The claims, including this one, that did not lead to an attempt.

    Claims that ended in doubt do not count: the policy limits them. Claims after an open attempt do
    count, because a worker may die each time before it declares the resend.
    """
    return job.claims - doubts(job) if job.open_attempt else job.claims


def _retry(
    wait: timedelta, failure: model.Failure, *, charged: bool, expires_in: timedelta
) -> model.Retry | model.Dead:
    if wait >= expires_in:
        return model.Dead(model.DeadReason.EXPIRED, failure, charged=charged)
    return model.Retry(wait, charged, failure)

"""Decide what becomes of a message: after an attempt, and before one that may have to be left out.

In comes what the provider said, or a job just claimed; out goes a verdict. Pure: no clock, no
randomness, no I/O; ``chance`` in [0, 1) comes from the caller. A crash here leaves nothing behind.
"""

from datetime import timedelta
from typing import assert_never

from carteiro import model
from carteiro.policy import classify
from carteiro.policy.fairness import SUSPECT_CLAIMS
from carteiro.policy.lifecycle import EXPIRED_UNSENT
from carteiro.policy.patience import wait_after
from carteiro.policy.retry import RetryPolicy

_LONGEST_UNMADE = timedelta(minutes=1)
MOST_CLAIMS = 5  # so many workers may die over a message before it is left alone


def judge(  # noqa: PLR0911, PLR0913 - a return an outcome, and each fact decides
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
) -> model.Verdict:
    """Turn the outcome of an attempt into a verdict.

    ``charged_before`` and ``in_doubt_before`` (see `doubts`) do not count this outcome.
    ``replays_in``: for so long the provider will know the call again by its key.
    ``elsewhere``: after so long another provider can have it, so that this one's own trouble ends nothing and
    is not charged: each is tried once before the policy has its wait.
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
            return _deferred(outcome, charged_before, policy, expires_in, chance)
        case model.NotMade(failure, wait):
            soon = min(wait, _LONGEST_UNMADE)  # nobody knows better than by asking again
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
    """What a claimer decides before it runs the job; None: go on, at once.

    Doubt comes first: whether it may be sent again does not depend on the rest. It is judged anew
    at each claim: what was to be a replay may come too late to be one. A message that kills workers
    comes before its expiry: people must learn of it.
    """
    is_replay = replays_in > model.ZERO
    if doubts(job) and not _may_send_again(doubts(job), job.delivery, policy, is_replay=is_replay):
        return model.Dead(model.DeadReason.IN_DOUBT, classify.in_doubt())
    if _undeclared_claims(job) > MOST_CLAIMS:
        return model.Dead(model.DeadReason.CRASHES_WORKER, classify.crashes_worker(job.claims - 1))
    if job.expires_in <= model.ZERO:
        return model.Dead(model.DeadReason.EXPIRED, EXPIRED_UNSENT)
    return None


def may_kill(job: model.LeasedJob) -> bool:
    """Whether the job is to run when nothing else of its process does: its last workers did not end it.

    What has had too many of them is not run at all, and keeps nobody waiting.
    """
    return job.claims > SUSPECT_CLAIMS and _undeclared_claims(job) <= MOST_CLAIMS


def is_orphan(job: model.LeasedJob) -> bool:
    """Whether its last worker did not end it: either it killed it, or it was in the same hands as what did."""
    return 1 < job.claims <= SUSPECT_CLAIMS


def doubts(job: model.LeasedJob) -> int:
    """How many outcomes of this round are unknown, the open attempt included."""
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
    # A header may be mistaken, or a proxy's: it ends no message that has time left.
    asked = outcome.retry_after if outcome.retry_after < expires_in else model.ZERO
    wait = max(policy.delay(failed, chance), asked)
    longer = max(wait, wait_after(policy, outcome.failure, failed, chance))
    soonest = longer if longer < expires_in else wait  # patience must not be what ends a message
    return _retry(soonest, outcome.failure, charged=charged, expires_in=expires_in)


def _may_send_again(
    in_doubt: int, delivery: model.Delivery, policy: RetryPolicy, *, is_replay: bool
) -> bool:
    """A replay is no second delivery: anybody may have it, as often as a failure is retried."""
    if is_replay:
        return in_doubt < policy.max_attempts
    return delivery is model.Delivery.AT_LEAST_ONCE and in_doubt <= policy.max_in_doubt_resends


def _undeclared_claims(job: model.LeasedJob) -> int:
    """The claims, this one included, that did not lead to an attempt.

    Claims that ended in doubt are bounded by the policy and not held against the message here, but
    an open attempt is no cover either: the resend may die before it is declared, time and again.
    """
    return job.claims - doubts(job) if job.open_attempt else job.claims


def _retry(
    wait: timedelta, failure: model.Failure, *, charged: bool, expires_in: timedelta
) -> model.Retry | model.Dead:
    if wait >= expires_in:
        return model.Dead(model.DeadReason.EXPIRED, failure, charged=charged)
    return model.Retry(wait, charged, failure)

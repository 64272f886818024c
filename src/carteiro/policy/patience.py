"""Minimum waits of failures that take long to end, such as greylisting; used by patient policies.

Presets are made for problems that end in seconds. Greylisting takes minutes, a full mailbox hours.
"""

from datetime import timedelta

from carteiro.model import MILLISECOND, ZERO, Category, Failure, Scope
from carteiro.policy.consequences import rule_name, suppression
from carteiro.policy.retry import RetryPolicy
from carteiro.policy.rules.ruling import Suppression

_GREYLISTED = tuple(timedelta(minutes=minutes) for minutes in (2, 5, 10, 20, 40))
_TOO_FAST = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 4, 8, 15))
_FULL = tuple(timedelta(hours=hours) for hours in (1, 6, 24))


def wait_after(policy: RetryPolicy, failure: Failure, failed: int, chance: float) -> timedelta:
    """The wait after failure number ``failed``: that of the policy, or longer if the policy is patient."""
    usual = policy.delay(failed, chance)
    if not policy.is_patient:
        return usual
    needed_ms = _needed(failure, failed) / MILLISECOND
    return max(usual, round(needed_ms * (1 + policy.jitter * chance)) * MILLISECOND)


def _needed(failure: Failure, failed: int) -> timedelta:
    table = _table_of(failure)
    return table[min(max(failed, 1), len(table)) - 1] if table else ZERO


def _table_of(failure: Failure) -> tuple[timedelta, ...]:
    if rule_name(failure).endswith(".greylisted"):
        return _GREYLISTED
    if failure.category is not Category.QUOTA_ERROR:
        return ()
    if failure.scope is Scope.RECIPIENT and suppression(failure) is Suppression.SOFT:
        return _FULL
    return _TOO_FAST if failure.scope in {Scope.RECIPIENT, Scope.DESTINATION} else ()

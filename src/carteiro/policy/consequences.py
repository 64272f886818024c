"""What follows from a failure beside its retry: for the breaker, the send rate and the suppression list.

All of it is told by the failure itself and by the rule that it names; nothing more is stored.
"""

from collections.abc import Iterator, Mapping

from carteiro.model import Category, Failure, Scope
from carteiro.policy.rules import codes, resend, ses, systems, words
from carteiro.policy.rules.ruling import Ruling, Suppression

# No slower pace helps: nothing more goes out until the day, or the month, is over.
_USED_UP = frozenset(
    {
        *(
            "ses.DailyQuotaExceeded",
            "ses.Throttling.daily_quota",
            "ses.TooManyRequests.daily_quota",
        ),
        *("ses.LimitExceeded.daily_quota", "smtp.text.daily_quota", "smtp.amazon_ses.daily_quota"),
        *(
            "smtp.resend.daily_quota",
            "resend.daily_quota_exceeded",
            "resend.monthly_quota_exceeded",
        ),
    }
)


def throttles(failure: Failure) -> bool:
    """Whether the shared send rate must fall: the provider itself said "too fast".

    A destination that says so, or a full mailbox, must not slow the mail to all others: its own mail waits.
    """
    return failure.category is Category.QUOTA_ERROR and failure.scope is Scope.PROVIDER


def may_open_breaker(failure: Failure) -> bool:
    """Whether it speaks against the provider's health: only what is the provider's, and no mere pace.

    What one destination holds against it, as a block list, does not: others take its mail.
    """
    ruling = RULINGS.get(rule_name(failure))
    if failure.scope is not Scope.PROVIDER or (ruling is not None and ruling.is_local):
        return False
    return not throttles(failure) or rule_name(failure) in _USED_UP


def suppression(failure: Failure) -> Suppression:
    """What it says about writing to the recipient again; hard only where nobody is there.

    Codes whose classes contradict each other (``450 5.1.1``) are no proof of that.
    """
    if failure.scope is not Scope.RECIPIENT:
        return Suppression.NONE
    name = rule_name(failure)
    ruling = RULINGS.get(name)
    if ruling is None and not name.startswith(
        "own."
    ):  # found out by ourselves: no mailbox was asked
        return Suppression.NONE
    if ruling is None or ruling.retryable != failure.retryable:  # an operator's own, or softened
        return Suppression.NONE if failure.retryable else Suppression.SOFT
    if ruling.suppress is Suppression.HARD and is_class_conflict(failure):
        return Suppression.SOFT
    return ruling.suppress


def is_class_conflict(failure: Failure) -> bool:
    """Whether code and enhanced code of a reply disagree on whether it may pass."""
    original = failure.original_code or ""
    return "." in original and failure.code[:1] in {"4", "5"} and original[0] != failure.code[0]


def rule_name(failure: Failure) -> str:
    """The rule without the stage that it was applied at."""
    return failure.rule.partition("@")[0]


def _named() -> Iterator[tuple[str, Ruling]]:
    for table, rulings in (
        ("enhanced", codes.ENHANCED),
        ("enhanced", codes.OPEN_ENHANCED),
        ("policy", codes.POLICY_AT),
        ("subject", codes.SUBJECTS),
        ("code", codes.CODES),
        ("class", codes.CLASSES),
    ):
        for key, ruling in rulings.items():
            yield f"smtp.{table}.{key}", ruling
    for rule in words.TEXT_RULES:
        yield f"smtp.text.{rule.name}", rule.ruling
    for system in systems.SYSTEMS:
        for rule in system.rules:
            yield f"smtp.{system.name}.{rule.name}", rule.ruling
    for name, ruling in (ses.NAMES | ses.COMMON_NAMES).items():
        yield f"ses.{name}", ruling
    for name, ruling in resend.NAMES.items():
        yield f"resend.{name}", ruling


RULINGS: Mapping[str, Ruling] = dict(_named())

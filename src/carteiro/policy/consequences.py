"""What follows from a failure beside its retry: for the breaker, the send rate and the suppression list.

All of it is told by the failure itself and by the rule that it names; nothing more is stored.
"""

from collections.abc import Iterator

from carteiro.model import Category, Failure, Scope
from carteiro.policy.own_rules import stage_of
from carteiro.policy.rules import codes, systems, words
from carteiro.policy.rules.ruling import Ruling, Suppression
from carteiro.policy.stage import BEFORE_RECIPIENTS, Stage

_UNDEFINED = "5.0.0"  # RFC 3463: says no more than that it is permanent


def throttles(failure: Failure) -> bool:
    """Whether the shared send rate must fall: the provider itself said "too fast".

    A destination that says so, or a full mailbox, must not slow the mail to all others: its own mail waits.
    """
    return failure.category is Category.QUOTA_ERROR and failure.scope is Scope.PROVIDER


def is_providers_own(failure: Failure) -> bool:
    """Whether the provider, and no destination, is why it failed: another one may do better, and nobody has it.

    What one destination holds against a provider, as a block list, is not: the next one is no better known there.
    """
    if failure.scope is not Scope.PROVIDER:
        return False
    ruling = RULINGS.get(rule_name(failure))
    return ruling is None or not ruling.is_local or stage_of(failure) in BEFORE_RECIPIENTS


def may_open_breaker(failure: Failure) -> bool:
    """Whether it speaks against the provider's health: only what is the provider's own, and no mere pace.

    Nor does what it says to MAIL of one sender's address, or of one message: others' mail it takes.
    """
    if not is_providers_own(failure) or _is_of_one_sender(failure):
        return False
    ruling = RULINGS.get(rule_name(failure))
    return not throttles(failure) or (ruling is not None and ruling.is_used_up)


def _is_of_one_sender(failure: Failure) -> bool:
    """Said to MAIL: all that knows a sender, and what is refused for good but for our account or host."""
    ruling = RULINGS.get(rule_name(failure))
    if ruling is None or stage_of(failure) is not Stage.MAIL:
        return False
    return ruling.scope is Scope.SENDER or not (failure.retryable or ruling.scope is Scope.PROVIDER)


def suppression(failure: Failure) -> Suppression:
    """What it says about writing to the recipient again; hard only where nobody is there.

    An SMTP reply says that if its words do, its codes agree and the recipient was what it answered.
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
    if ruling.suppress is Suppression.HARD and not _says_nobody(failure):
        return Suppression.SOFT
    return ruling.suppress


def _says_nobody(failure: Failure) -> bool:
    """Whether stage and codes allow what the words say: that there is no such mailbox."""
    if stage_of(failure) is not Stage.RCPT:
        return False
    enhanced = failure.original_code or ""
    if "." in enhanced and enhanced != _UNDEFINED:
        return failure.code[:1] == "5" and enhanced in codes.MAILBOX_ENHANCED
    return failure.code in codes.MAILBOX_CODES


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
        ("code", {".".join(place): ruling for place, ruling in codes.CODES_AT.items()}),
        ("class", codes.CLASSES),
    ):
        for key, ruling in rulings.items():
            yield f"smtp.{table}.{key}", ruling
    for rule in words.TEXT_RULES:
        yield f"smtp.text.{rule.name}", rule.ruling
    for system in systems.SYSTEMS:
        for rule in system.rules:
            yield f"smtp.{system.name}.{rule.name}", rule.ruling


# By the name of the rule; `rules.answers` adds those of each provider.
RULINGS: dict[str, Ruling] = dict(_named())

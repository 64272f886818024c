"""Consequences of a failure besides its retry: for the breaker, the send rate and the suppression list.

All follow from the failure and the rule that it names; nothing more is stored.
"""

from collections.abc import Iterator

from carteiro.model import Category, Failure, Scope
from carteiro.policy.own_rules import stage_of
from carteiro.policy.rules import codes, systems, words
from carteiro.policy.rules.ruling import Ruling, Suppression
from carteiro.policy.stage import BEFORE_RECIPIENTS, Stage

_UNDEFINED = "5.0.0"  # RFC 3463: permanent, and no more is known


def throttles(failure: Failure) -> bool:
    """True if the shared send rate must fall: the provider itself throttles.

    A throttling destination or a full mailbox must not slow other mail: only its own mail waits.
    """
    return failure.category is Category.QUOTA_ERROR and failure.scope is Scope.PROVIDER


def is_providers_own(failure: Failure) -> bool:
    """True if the provider failed, not a destination: another provider may succeed, and none has the mail.

    A destination that blocks a provider, as by a block list, does not count: it may block the next one too.
    """
    if failure.scope is not Scope.PROVIDER:
        return False
    ruling = RULINGS.get(rule_name(failure))
    return ruling is None or not ruling.is_local or stage_of(failure) in BEFORE_RECIPIENTS


def may_open_breaker(failure: Failure) -> bool:
    """True if the failure is about the provider's health: its own failure, and not mere throttling.

    A refusal at MAIL of one sender's address, or of one message, does not count: other mail is accepted.
    """
    if not is_providers_own(failure) or _is_of_one_sender(failure):
        return False
    ruling = RULINGS.get(rule_name(failure))
    return not throttles(failure) or (ruling is not None and ruling.is_used_up)


def _is_of_one_sender(failure: Failure) -> bool:
    """True for a reply to MAIL about the sender, and for a permanent one that is not about our account or host."""
    ruling = RULINGS.get(rule_name(failure))
    if ruling is None or stage_of(failure) is not Stage.MAIL:
        return False
    return ruling.scope is Scope.SENDER or not (failure.retryable or ruling.scope is Scope.PROVIDER)


def suppression(failure: Failure) -> Suppression:
    """The effect on the recipient's address; hard only if the mailbox does not exist.

    An SMTP reply means that if its text says so, its codes agree and it answered a recipient.
    """
    if failure.scope is not Scope.RECIPIENT:
        return Suppression.NONE
    name = rule_name(failure)
    ruling = RULINGS.get(name)
    # Found by our own checks: no mailbox was asked.
    if ruling is None and not name.startswith("own."):
        return Suppression.NONE
    if ruling is None or ruling.retryable != failure.retryable:  # an operator's own, or softened
        return Suppression.NONE if failure.retryable else Suppression.SOFT
    if ruling.suppress is Suppression.HARD and not _says_nobody(failure):
        return Suppression.SOFT
    return ruling.suppress


def _says_nobody(failure: Failure) -> bool:
    """True if stage and codes agree with the text that there is no such mailbox."""
    if stage_of(failure) is not Stage.RCPT:
        return False
    enhanced = failure.original_code or ""
    if "." in enhanced and enhanced != _UNDEFINED:
        return failure.code[:1] == "5" and enhanced in codes.MAILBOX_ENHANCED
    return failure.code in codes.MAILBOX_CODES


def rule_name(failure: Failure) -> str:
    """The rule without its stage."""
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

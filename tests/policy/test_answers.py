"""Answers of real servers, labelled from their documents: the share that is classified correctly."""

import sys

from carteiro.model import Category, Failure, Scope
from carteiro.policy.consequences import suppression
from carteiro.policy.rules.ruling import Suppression
from carteiro.policy.stage import Stage
from support.answers import ALL, ANSWERS, Labelled, labelled

FEWEST_ANSWERS = 300
TERMS = ("trade", "causes", "tongues")
LEAST_RIGHT, MOST_UNDECIDED, MOST_BY_CODE = 0.99, 0.02, 0.08

PERMANENT, TRANSIENT = Category.PERMANENT_ERROR, Category.TRANSIENT_ERROR
QUOTA, CONFIGURATION = Category.QUOTA_ERROR, Category.CONFIGURATION_ERROR
LATER, NEVER = True, False
NONE, SOFT, HARD = Suppression.NONE, Suppression.SOFT, Suppression.HARD

# The meaning of a label: category, retryable, scope, and its effect on the recipient.
LABELS = {
    "no_mailbox": (PERMANENT, NEVER, Scope.RECIPIENT, HARD),
    "refused_recipient": (PERMANENT, NEVER, Scope.RECIPIENT, SOFT),
    "unreached_recipient": (PERMANENT, NEVER, Scope.RECIPIENT, NONE),
    "busy_recipient": (TRANSIENT, LATER, Scope.RECIPIENT, NONE),
    "full_mailbox": (QUOTA, LATER, Scope.RECIPIENT, SOFT),
    "recipient_rate": (QUOTA, LATER, Scope.RECIPIENT, NONE),
    "bad_message": (PERMANENT, NEVER, Scope.MESSAGE, NONE),
    "invalid": (Category.VALIDATION_ERROR, NEVER, Scope.MESSAGE, NONE),
    "message_later": (TRANSIENT, LATER, Scope.MESSAGE, NONE),
    "sender": (CONFIGURATION, NEVER, Scope.SENDER, NONE),
    "sender_permanent": (PERMANENT, NEVER, Scope.SENDER, NONE),
    "sender_later": (TRANSIENT, LATER, Scope.SENDER, NONE),
    "tenant": (CONFIGURATION, NEVER, Scope.TENANT, NONE),
    "account": (CONFIGURATION, NEVER, Scope.PROVIDER, NONE),
    "account_later": (CONFIGURATION, LATER, Scope.PROVIDER, NONE),
    "closed": (PERMANENT, NEVER, Scope.PROVIDER, NONE),
    "unavailable": (TRANSIENT, LATER, Scope.PROVIDER, NONE),
    "timed_out": (Category.TIMEOUT_ERROR, LATER, Scope.PROVIDER, NONE),
    "blocked": (TRANSIENT, LATER, Scope.PROVIDER, NONE),
    "throttled": (QUOTA, LATER, Scope.PROVIDER, NONE),
    "later": (TRANSIENT, LATER, Scope.DESTINATION, NONE),
    "too_fast": (QUOTA, LATER, Scope.DESTINATION, NONE),
    "destination_full": (QUOTA, LATER, Scope.DESTINATION, NONE),
    "refuses": (PERMANENT, NEVER, Scope.DESTINATION, NONE),
}


def verdict_of(failure: Failure) -> tuple[Category, bool, Scope, Suppression]:
    """The verdict of a failure, in the form of a label."""
    return failure.category, failure.retryable, failure.scope, suppression(failure)


def expected(each: Labelled) -> tuple[Category, bool, Scope, Suppression]:
    """The verdict of its label; at MAIL the relay speaks for itself, with any text."""
    category, retryable, scope, suppress = LABELS[each.label]
    is_before_rcpt = each.stage is Stage.MAIL
    return (
        (category, retryable, Scope.PROVIDER, NONE)
        if is_before_rcpt
        else (category, retryable, scope, suppress)
    )


def is_undecided(failure: Failure) -> bool:
    """True if no rule knew it, or only the class of its code."""
    name = failure.rule.partition("@")[0]
    return name.endswith(".unknown") or name == "unknown" or "smtp.class." in name


def is_by_code(failure: Failure) -> bool:
    """True if none of its text was understood."""
    return failure.rule.startswith(("smtp.code.", "smtp.class.")) or is_undecided(failure)


def test_answers_are_many_and_unique() -> None:
    """A score over a handful says nothing."""
    assert len(ALL) >= FEWEST_ANSWERS
    assert len({(each.text, each.stage, each.mx) for each in ALL}) == len(ALL)


def test_nearly_all_answers_are_classified_correctly() -> None:
    """Category, retry, scope and suppression must all be right; wrong ones are listed."""
    judged = [(each, each.judged()) for each in ALL]
    wrong = [
        f"{each.label} @{each.stage}: {each.text!r} -> {said.rule} {verdict_of(said)}"
        for each, said in judged
        if verdict_of(said) != expected(each)
    ]
    undecided = [each for each, said in judged if is_undecided(said)]
    right = 1 - len(wrong) / len(ALL)

    sys.stdout.write("\n".join([*wrong, f"{len(ALL)} answers: {right:.1%} right\n"]))
    assert right >= LEAST_RIGHT
    assert len(undecided) / len(ALL) <= MOST_UNDECIDED, undecided
    by_code = [each for each, said in judged if is_by_code(said)]
    assert len(by_code) / len(ALL) <= MOST_BY_CODE, by_code


def test_terms_of_mail_servers_are_understood() -> None:
    """None is left to its code, and none is classified wrongly."""
    terms = [each for name in TERMS for each in labelled(ANSWERS / f"{name}.toml")]
    judged = [(each, each.judged()) for each in terms]

    assert [each.text for each, said in judged if verdict_of(said) != expected(each)] == []
    assert [each.text for each, said in judged if is_by_code(said)] == []


def test_existing_recipient_is_never_suppressed_for_good() -> None:
    """The worst mistake: a suppressed address is never sent to again."""
    hard = [each for each in ALL if suppression(each.judged()) is HARD]

    assert hard
    assert {each.label for each in hard} == {"no_mailbox"}

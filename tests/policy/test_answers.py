"""Answers as real servers give them, labelled from their documents: how many are judged rightly."""

import sys

from carteiro.model import Category, Failure, Scope
from carteiro.policy.consequences import suppression
from carteiro.policy.rules.ruling import Suppression
from support.answers import ALL

FEWEST_ANSWERS = 300
LEAST_RIGHT, MOST_UNDECIDED = 0.95, 0.02

PERMANENT, TRANSIENT = Category.PERMANENT_ERROR, Category.TRANSIENT_ERROR
QUOTA, CONFIGURATION = Category.QUOTA_ERROR, Category.CONFIGURATION_ERROR
LATER, NEVER = True, False
NONE, SOFT, HARD = Suppression.NONE, Suppression.SOFT, Suppression.HARD

# What people mean by a label: category, whether it may pass, whose fault, what it says of the recipient.
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
    """What a label says, out of a failure."""
    return failure.category, failure.retryable, failure.scope, suppression(failure)


def is_undecided(failure: Failure) -> bool:
    """Whether no rule knew it, or only the class of its code."""
    name = failure.rule.partition("@")[0]
    return name.endswith(".unknown") or name == "unknown" or "smtp.class." in name


def test_there_are_enough_answers_and_no_twins() -> None:
    """A score over a handful says nothing."""
    assert len(ALL) >= FEWEST_ANSWERS
    assert len({(each.text, each.stage, each.mx) for each in ALL}) == len(ALL)


def test_nearly_all_answers_are_judged_rightly() -> None:
    """Category, retry, scope and suppression must all be right; what is wrong is told."""
    judged = [(each, each.judged()) for each in ALL]
    wrong = [
        f"{each.label} @{each.stage}: {each.text!r} -> {said.rule} {verdict_of(said)}"
        for each, said in judged
        if verdict_of(said) != LABELS[each.label]
    ]
    undecided = [each for each, said in judged if is_undecided(said)]
    right = 1 - len(wrong) / len(ALL)

    sys.stdout.write("\n".join([*wrong, f"{len(ALL)} answers: {right:.1%} right\n"]))
    assert right >= LEAST_RIGHT
    assert len(undecided) / len(ALL) <= MOST_UNDECIDED, undecided

"""Rules that an operator writes: when they fit, what they change, and which patterns are too dear."""

import re
from datetime import timedelta

import pytest

from carteiro.model import Category, Deferred, Failure, Rejected, Scope, Taken, Unknown
from carteiro.policy.classify import classify_ses, classify_smtp
from carteiro.policy.own_rules import OwnRule, bounded_pattern, overruled, overruled_outcome
from carteiro.policy.stage import Stage

SAID = classify_smtp("550 5.7.1 The mailbox is being moved", stage=Stage.RCPT)
HOST = "mx1.Example.com"
SECOND = timedelta(seconds=1)


def a_rule(**conditions: object) -> OwnRule:
    """One that lets pass what it fits."""
    meaning = {"category": Category.TRANSIENT_ERROR, "retryable": True, "scope": Scope.DESTINATION}
    return OwnRule("moving", **(meaning | conditions))  # type: ignore[arg-type]


FITTING = [
    {},
    {"provider": "smtp"},
    {"stage": Stage.RCPT},
    {"mx": "example.com"},
    {"mx": "mx1.example.com"},
    {"code": "550"},
    {"enhanced": "5.7.1"},
    {"text": re.compile("being MOVED", re.IGNORECASE)},
]
UNFIT = [
    {"provider": "ses"},
    {"stage": Stage.MAIL},
    {"mx": "ample.com"},
    {"mx": "example.org"},
    {"code": "554"},
    {"enhanced": "5.1.1"},
    {"text": re.compile("gone")},
    {"code": "550", "stage": Stage.DOT},
]


@pytest.mark.parametrize("conditions", FITTING, ids=str)
def test_a_rule_decides_where_all_its_conditions_hold(conditions: dict[str, object]) -> None:
    """The verdict is the rule's, and names it; what was said stays."""
    failure = overruled(SAID, [a_rule(**conditions)], provider="smtp", mx=HOST)

    assert (failure.category, failure.retryable) == (Category.TRANSIENT_ERROR, True)
    assert (failure.scope, failure.rule) == (Scope.DESTINATION, "own.moving@rcpt")
    assert (failure.code, failure.original_code, failure.reason) == (
        SAID.code,
        SAID.original_code,
        SAID.reason,
    )


@pytest.mark.parametrize("conditions", UNFIT, ids=str)
def test_a_rule_is_silent_where_one_condition_does_not_hold(conditions: dict[str, object]) -> None:
    """The verdict stays as it was."""
    assert overruled(SAID, [a_rule(**conditions)], provider="smtp", mx=HOST) is SAID


def test_the_first_rule_that_fits_decides() -> None:
    """Order is the operator's."""
    rules = [
        a_rule(code="554"),
        OwnRule(
            "first",
            Category.PERMANENT_ERROR,
            retryable=False,
            scope=Scope.MESSAGE,
            code="SES_THROTTLING",
        ),
        a_rule(),
    ]

    failure = overruled(classify_ses("Throttling", "slow"), rules, provider="ses")

    assert (failure.rule, failure.retryable) == ("own.first", False)


def test_an_outcome_follows_its_failure() -> None:
    """What may pass now is deferred, what may not is rejected; a longer wait stays."""
    giving_up = OwnRule("no", Category.PERMANENT_ERROR, retryable=False, scope=Scope.RECIPIENT)

    def ruled(outcome: object, rule: OwnRule) -> object:
        return overruled_outcome(outcome, [rule], provider="smtp")  # type: ignore[arg-type]

    passing: Failure = overruled(SAID, [a_rule()], provider="smtp")
    refused = overruled(passing, [giving_up], provider="smtp")
    assert ruled(Rejected(SAID), a_rule()) == Deferred(passing)
    assert ruled(Rejected(SAID), giving_up) == Rejected(refused)
    assert ruled(Deferred(passing, SECOND), giving_up) == Rejected(refused)
    assert ruled(Deferred(passing, SECOND), a_rule()) == Deferred(passing, SECOND)
    assert ruled(Taken("1", (("a@example.com", SAID),)), a_rule()) == Taken(
        "1", (("a@example.com", passing),)
    )
    assert ruled(Taken("1"), a_rule()) == Taken("1")


def test_what_is_in_doubt_stays_so() -> None:
    """No rule knows what became of a mail that nobody answered for."""
    outcome = Unknown(SAID)

    assert overruled_outcome(outcome, [a_rule()], provider="smtp") is outcome


@pytest.mark.parametrize(
    "text",
    [
        "moved",
        "mailbox .{0,40}moved",
        "a|b|c",
        "^5\\d\\d",
        "(user|box) is .* gone",
        "x{3}",
        "[a-z]+ no",
    ],
)
def test_a_cheap_pattern_is_taken(text: str) -> None:
    """In any case of letters."""
    assert bounded_pattern(text).flags & re.IGNORECASE


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("(a+)+b", "quick"),
        ("(a|aa)*b", "quick"),
        (".*.*x", "quick"),
        ("(a?){40}b", "quick"),
        ("(", "regular expression"),
        ("(a)\\1", "only letters"),
        ("(?=a)b", "only letters"),
        ("x" * 201, "at most 200"),
    ],
)
def test_a_pattern_that_could_take_long_is_refused(text: str, says: str) -> None:
    """A server that knows the pattern must not be able to stop us."""
    with pytest.raises(ValueError, match=says):
        bounded_pattern(text)

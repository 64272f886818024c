"""Custom rules of an operator: conditions, effects, and patterns that are too expensive."""

import re
from datetime import timedelta

import pytest

from carteiro.config.own_codes import refuse_unfit
from carteiro.model import Category, Deferred, Failure, Rejected, Scope, Taken, Unknown
from carteiro.policy.classify import classify_smtp
from carteiro.policy.own_rules import OwnRule, bounded_pattern, overruled, overruled_outcome
from carteiro.policy.stage import Stage
from carteiro.providers.answers import provider_of
from carteiro.providers.resend import rules as resend
from carteiro.providers.resend.rules import classify_resend
from carteiro.providers.ses import rules as ses
from carteiro.providers.ses.rules import classify_ses

KNOWN = [
    *(classify_ses(name, name) for name in ses.NAMES | ses.COMMON_NAMES),
    *(classify_resend(name, name) for name in resend.NAMES),
]
SAID = classify_smtp("550 5.7.1 The mailbox is being moved", stage=Stage.RCPT)
HOST = "mx1.Example.com"
SECOND = timedelta(seconds=1)


def a_rule(**conditions: object) -> OwnRule:
    """A rule that makes its matches retryable."""
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
def test_rule_decides_where_all_its_conditions_hold(conditions: dict[str, object]) -> None:
    """The verdict is the rule's, and names it; the original answer stays."""
    failure = overruled(SAID, [a_rule(**conditions)], provider="smtp", mx=HOST)

    assert (failure.category, failure.retryable) == (Category.TRANSIENT_ERROR, True)
    assert (failure.scope, failure.rule) == (Scope.DESTINATION, "own.moving@rcpt")
    assert (failure.code, failure.original_code, failure.reason) == (
        SAID.code,
        SAID.original_code,
        SAID.reason,
    )


@pytest.mark.parametrize("conditions", UNFIT, ids=str)
def test_rule_does_not_apply_where_one_condition_fails(conditions: dict[str, object]) -> None:
    """The verdict stays."""
    assert overruled(SAID, [a_rule(**conditions)], provider="smtp", mx=HOST) is SAID


def test_first_matching_rule_decides() -> None:
    """The order is the operator's."""
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


def test_outcome_follows_its_failure() -> None:
    """A retryable one is deferred, another is rejected; a longer delay stays."""
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


def test_doubt_stays_a_doubt() -> None:
    """No rule knows the result of an unanswered mail."""
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
        "(mailbox|user|account) .{0,30}(moved|closed)",
        ".{0,40}.{0,40}x",
    ],
)
def test_cheap_pattern_is_accepted(text: str) -> None:
    """In any case of letters."""
    assert bounded_pattern(text).flags & re.IGNORECASE


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("(a+)+b", "fast"),
        ("(a|aa)*b", "fast"),
        (".*.*x", "fast"),
        ("(a?){40}b", "fast"),
        (".{0,49}.{0,49}.{200}x", "fast"),
        ("(sb|\\u017fb)*x", "fast"),  # the long s is an s in another case
        ("(ab|a.)*x", "fast"),
        ("(|a){9}x{600}", "fast"),
        ("(", "regular expression"),
        ("(a)\\1", "only letters"),
        ("(?=a)b", "only letters"),
        ("x" * 201, "at most 200"),
    ],
)
def test_expensive_pattern_is_refused(text: str, says: str) -> None:
    """A server that knows the pattern must not be able to stop us."""
    with pytest.raises(ValueError, match=says):
        bounded_pattern(text)


# --- codes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "provider"),
    [
        ("550", ""),
        ("421", "smtp"),
        ("550", "sandbox"),
        ("SANDBOX_TIMEOUT", "sandbox"),
        ("SES_THROTTLING", "sandbox"),
        ("SES_MESSAGE_REJECTED", "sandbox"),
        ("RESEND_TIMEOUT", "resend"),
        ("SES_THROTTLING", ""),
        ("SES_THROTTLING", "ses"),
        ("SES_TIMEOUT", "ses"),
        ("RESEND_RATE_LIMIT_EXCEEDED", "resend"),
        ("NETWORK_ERROR", "smtp"),
        ("RESEND_UNKNOWN", "resend"),
        ("SES_503", "ses"),
        ("SES_BRAND_NEW_THING", "ses"),  # providers add errors before we learn of them
        ("RESEND_BRAND_NEW_THING", ""),
    ],
)
def test_possible_code_is_accepted(code: str, provider: str) -> None:
    """Also a new one, if it is similar to no known one."""
    refuse_unfit(code, provider)


@pytest.mark.parametrize(
    ("code", "provider", "says"),
    [
        ("MessageRejected", "", "SES_MESSAGE_REJECTED"),
        ("ThrottlingException", "ses", "SES_THROTTLING"),
        ("rate_limit_exceeded", "resend", "RESEND_RATE_LIMIT_EXCEEDED"),
        ("SES_THROTLING", "ses", "SES_THROTTLING"),
        ("ses_throttling", "", "SES_THROTTLING"),
        ("RESEND_DAILY_QUOTA", "", "RESEND_DAILY_QUOTA_EXCEEDED"),
        ("SES_BRAND_NEW_THING", "resend", "such as RESEND_"),
        ("550", "ses", "such as SES_"),
        ("SES_THROTTLING", "smtp", "such as 550"),
        ("999", "", "such as 550"),
        ("5.7.1", "", "such as 550"),
    ],
)
def test_impossible_code_is_refused_with_a_suggestion(code: str, provider: str, says: str) -> None:
    """Such a rule would silently never match."""
    with pytest.raises(ValueError, match=says):
        refuse_unfit(code, provider)


@pytest.mark.parametrize("failure", KNOWN, ids=lambda each: each.code)
def test_every_known_code_can_be_used_in_a_rule(failure: Failure) -> None:
    """Of SES and of Resend."""
    refuse_unfit(failure.code, provider_of(failure))

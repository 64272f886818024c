"""Answers as people hand them in and as the ledger keeps them."""

from dataclasses import replace

import pytest

from carteiro.model import Failure
from carteiro.policy import classify
from carteiro.policy.answers import judge_answer, judged_again, provider_of
from carteiro.policy.classify import classify_resend, classify_ses, classify_smtp
from carteiro.policy.stage import Stage


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("550 5.1.1 no", "550"),
        ("SMTP error 421: busy", "421"),
        ("Throttling: slow", "SES_THROTTLING"),
        ("TooManyRequestsException: slow", "SES_TOO_MANY_REQUESTS"),
        ("An error occurred (BadRequestException) when calling: no", "SES_BAD_REQUEST"),
        ("rate_limit_exceeded", "RESEND_RATE_LIMIT_EXCEEDED"),
        ("429 rate_limit_exceeded: slow", "RESEND_RATE_LIMIT_EXCEEDED"),
        ("429 Too many", "429"),
        ("¿qué?", "UNKNOWN"),
        ("", "UNKNOWN"),
    ],
)
def test_an_answer_without_a_provider_is_known_by_its_looks(text: str, code: str) -> None:
    """A reply by its number, an error by a name that only one service uses."""
    assert judge_answer(text).code == code


@pytest.mark.parametrize(
    ("text", "provider", "code"),
    [
        ("NewErrorException: what", "ses", "SES_NEW_ERROR"),
        ("403 a_new_name: what", "resend", "RESEND_A_NEW_NAME"),
        ("Throttling: slow", "smtp", "SES_THROTTLING"),
        ("250 Ok", "smtp", "250"),
    ],
)
def test_the_provider_says_how_an_answer_is_read(text: str, provider: str, code: str) -> None:
    """Also where a name is new; a relay may pass on what SES said."""
    assert judge_answer(text, provider=provider).code == code


STORED = [
    classify_smtp("550 No", stage=Stage.MAIL),
    classify_smtp("550 5.1.1 No"),
    classify_ses("MessageRejected", "Email address is not verified"),
    classify_ses("NetworkingError", "gone"),
    classify_resend("validation_error", "The domain is not verified", 403),
    classify_resend("validation_error", "No", 400),
    classify_resend("a_new_name", "No", 429),
    classify_resend("a_new_name", "No"),
    classify.unknown("what?"),
]


@pytest.mark.parametrize("failure", STORED, ids=lambda each: each.rule)
def test_a_stored_failure_is_judged_as_it_was(failure: Failure) -> None:
    """What is kept of it is enough; so it is when a rule of one's own had decided."""
    again = judged_again(failure)

    assert again == failure


def test_the_stage_outlives_a_rule_of_ones_own() -> None:
    """When such a rule is taken away, the verdict is what it would have been."""
    first = classify_smtp("550 No", stage=Stage.MAIL)

    assert judged_again(replace(first, rule="own.mine@mail", retryable=True)) == first


@pytest.mark.parametrize(
    "failure", [classify.timeout("smtp"), classify.network("gone"), classify.in_doubt()]
)
def test_what_no_provider_answered_is_not_judged_again(failure: Failure) -> None:
    """No rule about answers applies to it."""
    assert judged_again(failure) is None


def test_a_stored_failure_tells_whose_answer_it_was() -> None:
    """By its code, or by the rule."""
    found = [provider_of(each) for each in STORED]

    assert found == ["smtp"] * 2 + ["ses"] * 2 + ["resend"] * 4 + ["smtp"]

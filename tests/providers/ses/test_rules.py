"""Meaning of SES' errors: the documented table, and names inside of texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import Category, Failure
from carteiro.policy.classify import LONGEST_REASON
from carteiro.providers.ses import rules as ses
from carteiro.providers.ses.rules import ANSWERS, classify_ses

LATER, NEVER = True, False

PERMANENT = Category.PERMANENT_ERROR
TRANSIENT = Category.TRANSIENT_ERROR
QUOTA = Category.QUOTA_ERROR
CONFIGURATION = Category.CONFIGURATION_ERROR
TIMEOUT = Category.TIMEOUT_ERROR


def is_well_formed(failure: Failure) -> bool:
    """True if every store, log and terminal can show it, with a readable reason."""
    words = [failure.code, failure.reason, failure.rule, failure.original_code or "-"]
    return (
        all(word.strip() and word.isprintable() for word in words)
        and len(failure.reason) <= LONGEST_REASON
    )


@pytest.mark.parametrize(
    ("name", "code", "category", "retryable"),
    [
        ("MessageRejected", "SES_MESSAGE_REJECTED", PERMANENT, NEVER),
        (
            "MailFromDomainNotVerified",
            "SES_MAIL_FROM_DOMAIN_NOT_VERIFIED",
            CONFIGURATION,
            NEVER,
        ),
        (
            "ConfigurationSetDoesNotExist",
            "SES_CONFIGURATION_SET_DOES_NOT_EXIST",
            CONFIGURATION,
            NEVER,
        ),
        ("AccountSendingPausedException", "SES_ACCOUNT_SENDING_PAUSED", PERMANENT, NEVER),
        ("Throttling", "SES_THROTTLING", QUOTA, LATER),
        ("MaxSendRateExceeded", "SES_MAX_SEND_RATE_EXCEEDED", QUOTA, LATER),
        ("DailyQuotaExceeded", "SES_DAILY_QUOTA_EXCEEDED", QUOTA, LATER),
        ("ServiceUnavailable", "SES_SERVICE_UNAVAILABLE", TRANSIENT, LATER),
        ("RequestTimeout", "SES_TIMEOUT", TIMEOUT, LATER),
        ("NetworkingError", "NETWORK_ERROR", TRANSIENT, LATER),
        ("TooManyRequestsException", "SES_TOO_MANY_REQUESTS", QUOTA, LATER),
        ("AccountSuspendedException", "SES_ACCOUNT_SUSPENDED", PERMANENT, NEVER),
        ("BadRequestException", "SES_BAD_REQUEST", PERMANENT, NEVER),
        ("NotFoundException", "SES_NOT_FOUND", CONFIGURATION, NEVER),
        ("InternalServiceErrorException", "SES_INTERNAL_SERVICE_ERROR", TRANSIENT, LATER),
        ("InvalidClientTokenId", "SES_INVALID_CLIENT_TOKEN_ID", CONFIGURATION, NEVER),
        ("ASNewErrorException", "SES_AS_NEW_ERROR", TRANSIENT, LATER),
    ],
)
def test_error_of_ses_has_its_documented_code(
    name: str, code: str, category: Category, *, retryable: bool
) -> None:
    """The names of SES become codes of our own; an unknown name is retryable."""
    failure = classify_ses(name, "what it said")

    assert (failure.code, failure.category, failure.retryable) == (code, category, retryable)
    assert (failure.original_code, failure.reason) == (name, "what it said")


@pytest.mark.parametrize("name", [*ses.NAMES, *ses.COMMON_NAMES])
def test_error_of_ses_is_known_with_and_without_prefix_and_suffix(name: str) -> None:
    """The same error comes as name, as exception, with a service before it or a shape."""
    spellings = [
        name,
        f"{name}Exception",
        f"AWS.SimpleEmailService.{name}",
        f"com.amazonaws.sesv2#{name}Exception",
    ]

    assert {classify_ses(each, "no").rule for each in spellings} == {f"ses.{name}"}


@pytest.mark.parametrize(
    ("name", "message", "code", "reason"),
    [
        ("Throttling", " ", "SES_THROTTLING", "Throttling"),
        ("", "", "SES_UNKNOWN", "No reason was given"),
        ("§", "said", "SES_UNKNOWN", "said"),
    ],
)
def test_error_of_ses_always_has_code_and_reason(
    name: str, message: str, code: str, reason: str
) -> None:
    """Without a message the name is the reason, without both we say so."""
    failure = classify_ses(name, message)

    assert (failure.code, failure.reason) == (code, reason)
    assert is_well_formed(failure)


@pytest.mark.parametrize(
    ("text", "code", "retryable"),
    [
        ("Throttling", "SES_THROTTLING", LATER),
        ("MessageRejected: not verified", "SES_MESSAGE_REJECTED", NEVER),
        ("AWS.SimpleEmailService.Throttling", "SES_THROTTLING", LATER),
        ("it was AWS.SimpleEmailService.MessageRejected.", "SES_MESSAGE_REJECTED", NEVER),
        (
            "An error occurred (BadRequestException) when calling the SendEmail operation: no",
            "SES_BAD_REQUEST",
            NEVER,
        ),
    ],
)
def test_error_is_found_at_the_start_and_behind_a_known_prefix(
    text: str, code: str, *, retryable: bool
) -> None:
    """The name is found, and the whole text is the reason."""
    failure = ANSWERS.finds(text)

    assert failure is not None
    assert (failure.code, failure.retryable) == (code, retryable)
    assert failure.reason == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "Throttling of tenants is on",
        "MessageRejectedTwice",
        "ValidationError: 1 validation error for Model",
        "An error occurred (404) when calling the SendEmail operation",
        "a MessageRejected b",
    ],
)
def test_name_elsewhere_means_nothing(text: str) -> None:
    """Others use such names, too."""
    assert ANSWERS.finds(text) is None


@given(st.text())
def test_every_text_has_a_verdict_with_a_reason(text: str) -> None:
    """No answer of SES breaks us, or leaves people without a reason."""
    assert is_well_formed(classify_ses(text, ""))
    assert is_well_formed(classify_ses("", text))

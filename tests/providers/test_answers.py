"""Answers as people type them and as the ledger stores them."""

from dataclasses import replace

import pytest

from carteiro.model import Category, Failure
from carteiro.policy import classify
from carteiro.policy.classify import classify_smtp
from carteiro.policy.stage import Stage
from carteiro.providers.answers import is_success, judge_answer, judged_again, provider_of
from carteiro.providers.resend.rules import classify_resend
from carteiro.providers.ses.rules import classify_ses

R_MISSING, S_TOO_MANY = "RESEND_MISSING_REQUIRED_FIELD", "SES_TOO_MANY_REQUESTS"


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
        (
            '{"statusCode":422,"name":"missing_required_field","message":"Missing `to` field."}',
            R_MISSING,
        ),
        (
            'HTTP 422: {"statusCode":422,"name":"missing_required_field","message":"No"} (x)',
            R_MISSING,
        ),
        ('{"statusCode":422,"name":"a_new_name","message":"No"}', "RESEND_A_NEW_NAME"),
        ('{"__type":"com.amazonaws.ses#MessageRejected","message":"No"}', "SES_MESSAGE_REJECTED"),
        ('{"Error": {"Code": "Throttling", "Message": "Rate exceeded"}}', "SES_THROTTLING"),
        ('{"name":"TooManyRequestsException","$metadata":{"httpStatusCode":429}}', S_TOO_MANY),
        ("botocore.errorfactory.TooManyRequestsException: An error occurred", S_TOO_MANY),
        ("HTTP 400 TooManyRequestsException: slow", S_TOO_MANY),
        ("HTTP/1.1 503 Service Unavailable", "HTTP_503"),
        ("503 Service Unavailable", "HTTP_503"),
        ("HTTP 429", "HTTP_429"),
        ('{"error": {"status": 503}}', "HTTP_503"),
        ("[Errno 111] Connection refused", "NETWORK_ERROR"),
        ("socket.gaierror: [Errno -2] Name or service not known", "NETWORK_ERROR"),
        ("Connection reset by peer", "NETWORK_ERROR"),
        ("TimeoutError: timed out", "SMTP_TIMEOUT"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "TLS_ERROR"),
        ('{"a": ', "UNKNOWN"),
        ('{"a": 1}', "UNKNOWN"),
        ("HTTP", "UNKNOWN"),
        ("{" * 5000, "UNKNOWN"),
        ('550 5.1.1 user unknown {"code":"NoSuchUser"}', "550"),
        ('451 4.7.1 Greylisted, {"code": "x"}', "451"),
        ('421 4.3.2 {"status":503}', "421"),
        ('429 {"name":"rate_limit_exceeded"}', "RESEND_RATE_LIMIT_EXCEEDED"),
        ("Timeout: 550 5.1.1 user unknown", "550"),
        ("(550, b'5.1.1 <ana@example.com>: user unknown')", "550"),
        ("SMTPRecipientsRefused: {'ana@example.com': (550, b'5.1.1 user unknown')}", "550"),
        ("smtplib.SMTPSenderRefused: (553, b'5.1.8 no', 'loja@example.com')", "553"),
        ("ResendError: 429 rate_limit_exceeded", "RESEND_RATE_LIMIT_EXCEEDED"),
        (
            "{ statusCode: 429, message: 'Too many', name: 'rate_limit_exceeded' }",
            "RESEND_RATE_LIMIT_EXCEEDED",
        ),
        (
            "ResendError: {'statusCode': 429, 'name': 'rate_limit_exceeded'}",
            "RESEND_RATE_LIMIT_EXCEEDED",
        ),
        ("HTTP 421", "HTTP_421"),
        ("", "UNKNOWN"),
    ],
)
def test_provider_of_an_answer_is_guessed(text: str, code: str) -> None:
    """A reply by its number, an error by a name that only one service uses."""
    assert judge_answer(text).code == code


@pytest.mark.parametrize(
    ("text", "provider", "code"),
    [
        ("NewErrorException: what", "ses", "SES_NEW_ERROR"),
        ("403 a_new_name: what", "resend", "RESEND_A_NEW_NAME"),
        ("Throttling: slow", "smtp", "SES_THROTTLING"),
        ("250 Ok", "smtp", "250"),
        ("429 Too Many Requests", "resend", "RESEND_UNKNOWN"),
        ("HTTP 503", "resend", "RESEND_UNKNOWN"),
        ("429 Too Many Requests", "ses", "SES_429"),
        ("HTTP 503", "ses", "SES_503"),
        ("503 Service Unavailable", "ses", "SES_503"),
        ("An error occurred (Throttling) when calling: slow", "ses", "SES_THROTTLING"),
        ("400 BadRequestException: no", "ses", "SES_BAD_REQUEST"),
        ("Connection refused", "resend", "NETWORK_ERROR"),
        ("ConnectTimeout: timed out", "ses", "SES_TIMEOUT"),
        ("ReadTimeout", "resend", "RESEND_TIMEOUT"),
        ("certificate has expired", "ses", "TLS_ERROR"),
        ("Name or service not known", "smtp", "NETWORK_ERROR"),
    ],
)
def test_provider_decides_how_an_answer_is_read(text: str, provider: str, code: str) -> None:
    """Also for a new name; a relay may pass on an answer of SES."""
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
    classify_ses("503", "Service Unavailable"),
    classify.unknown("what?"),
]


@pytest.mark.parametrize("failure", STORED, ids=lambda each: each.rule)
def test_stored_failure_is_classified_as_before(failure: Failure) -> None:
    """The stored fields are enough; also after a custom rule."""
    again = judged_again(failure)

    assert again == failure


def test_stage_outlives_a_custom_rule() -> None:
    """When the rule is removed, the verdict is the original one."""
    first = classify_smtp("550 No", stage=Stage.MAIL)

    assert judged_again(replace(first, rule="own.mine@mail", retryable=True)) == first


@pytest.mark.parametrize(
    "failure", [classify.timeout("smtp"), classify.network("gone"), classify.in_doubt()]
)
def test_failure_without_a_providers_answer_is_not_classified_again(failure: Failure) -> None:
    """No rule about answers applies to it."""
    assert judged_again(failure) is None


def test_stored_failure_has_its_provider() -> None:
    """By its code, or by the rule."""
    found = [provider_of(each) for each in STORED]

    assert found == ["smtp"] * 2 + ["ses"] * 2 + ["resend"] * 4 + ["ses", "smtp"]


@pytest.mark.parametrize(
    ("text", "provider", "category", "retryable", "rule"),
    [
        ("429 Too Many Requests", "resend", Category.QUOTA_ERROR, True, "resend.status.429"),
        ("HTTP 503", "resend", Category.TRANSIENT_ERROR, True, "resend.status.503"),
        ("429 Too Many Requests", "ses", Category.QUOTA_ERROR, True, "ses.status.429"),
        ("HTTP 413", "ses", Category.PERMANENT_ERROR, False, "ses.status.413"),
        ("HTTP 403", "ses", Category.CONFIGURATION_ERROR, True, "ses.status.403"),
        ("HTTP 404", "ses", Category.TRANSIENT_ERROR, True, "ses.unknown"),
        ("HTTP 503", "", Category.TRANSIENT_ERROR, True, "http.status.503"),
        ("timed out", "resend", Category.TIMEOUT_ERROR, True, "timeout"),
        ("tls handshake failure", "", Category.CONFIGURATION_ERROR, True, "smtp.tls_error"),
        ("Connection refused", "", Category.TRANSIENT_ERROR, True, "network"),
    ],
)
def test_status_and_silence_have_verdicts(
    text: str, provider: str, category: Category, rule: str, *, retryable: bool
) -> None:
    """As in the worker: its providers see a status where there is no name, and errors of libraries."""
    failure = judge_answer(text, provider=provider)

    assert (failure.category, failure.retryable) == (category, retryable)
    assert failure.rule == rule
    assert failure.reason


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("(550, b'5.1.1 <ana@example.com>: no such user')", "smtp.text.user_unknown"),
        (r"(550, b'5.1.1 no such\n5.1.1 user')", "smtp.enhanced.5.1.1"),
        ("HTTP 421", "http.status.421"),
        ('550 5.1.1 user unknown {"code":"NoSuchUser"}', "smtp.text.user_unknown"),
    ],
)
def test_wrapped_answer_is_found(text: str, rule: str) -> None:
    """The reply decides, not the text of a library or a server around it."""
    failure = judge_answer(text)

    assert (failure.rule, failure.retryable) == (rule, rule.startswith("http"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("250 OK", True),
        ("HTTP 204", True),
        ("250 5.1.1 no such user", False),
        ("2500", False),
        ("550 no", False),
    ],
)
def test_success_is_recognised(text: str, *, expected: bool) -> None:
    """A number that begins with a success of SMTP or HTTP."""
    assert is_success(text) is expected


def test_message_of_a_body_is_the_reason() -> None:
    """Not the whole body."""
    body = '{"statusCode":403,"name":"validation_error","message":"The domain is not verified."}'

    failure = judge_answer(body)

    assert (failure.reason, failure.rule) == (
        "The domain is not verified.",
        "resend.validation_error.forbidden",
    )

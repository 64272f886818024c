"""Doubt after the hand-over: announced in advance, as providers decide it."""

import httpx
import pytest
from botocore.exceptions import ClientError

from carteiro.model import Unknown
from carteiro.policy.classify import network, timeout
from carteiro.policy.doubt import may_leave_doubt
from carteiro.providers.resend import rules as resend
from carteiro.providers.resend.answers import outcome_of
from carteiro.providers.resend.rules import classify_resend
from carteiro.providers.ses.failures import said
from carteiro.providers.ses.rules import classify_ses


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("InternalFailure", 500),
        ("InternalServiceErrorException", 500),
        ("InternalServerError", 500),
        ("InternalError", 500),
        ("RequestTimeout", 408),
        ("500", 500),
        ("502", 502),
        ("408", 408),
        ("ServiceUnavailable", 503),
        ("ThrottlingException", 400),
        ("TooManyRequestsException", 429),
        ("ConcurrentModificationException", 500),
        ("MessageRejected", 400),
        ("429", 429),
    ],
)
def test_ses_leaves_the_announced_doubt(name: str, status: int) -> None:
    """By the name, as it comes with its status."""
    answer = {
        "Error": {"Code": name, "Message": "broken"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    outcome = said(ClientError(answer, "SendEmail"), begun=True)

    assert may_leave_doubt(classify_ses(name, "broken").rule) is isinstance(outcome, Unknown)


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("application_error", 500),
        ("internal_server_error", 500),
        ("service_unavailable", 503),
        ("a_new_name", 502),
        ("a_new_name", 408),
        ("rate_limit_exceeded", 429),
        ("validation_error", 422),
        ("validation_error", resend.FORBIDDEN),
        ("a_new_name", 409),
    ],
)
def test_resend_leaves_the_announced_doubt(name: str, status: int) -> None:
    """By the status, where the name is new."""
    outcome = outcome_of(httpx.Response(status, json={"name": name, "message": "broken"}))

    rule = classify_resend(name, "broken", status).rule
    assert may_leave_doubt(rule) is isinstance(outcome, Unknown)


def test_silence_leaves_a_doubt() -> None:
    """The result is unknown."""
    assert may_leave_doubt(timeout("smtp").rule)
    assert may_leave_doubt(network("lost").rule)

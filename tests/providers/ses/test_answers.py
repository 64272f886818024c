"""Answers of SES, and their outcomes: accepted, refused, or in doubt."""

import json
from datetime import timedelta

import pytest

from carteiro.model import ZERO, Category, Deferred, Outcome, Rejected, Scope, Unknown
from support.sending import failure_of, id_of, sent
from support.ses_sending import an_account
from support.ses_twin import Answer, Say

HTML = b"HTTP/1.1 503 Away\r\nContent-Length: 13\r\n\r\n<h1>away</h1>"


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (Answer("TooManyRequestsException", 429), Deferred, "SES_TOO_MANY_REQUESTS"),
        (Answer("ThrottlingException", 400), Deferred, "SES_THROTTLING"),
        (Answer("LimitExceededException"), Deferred, "SES_LIMIT_EXCEEDED"),
        (Answer("AccountSuspendedException"), Rejected, "SES_ACCOUNT_SUSPENDED"),
        (Answer("SendingPausedException"), Rejected, "SES_SENDING_PAUSED"),
        (Answer("MailFromDomainNotVerifiedException"), Rejected, "SES_MAIL_FROM_DOMAIN"),
        (Answer("MessageRejected"), Rejected, "SES_MESSAGE_REJECTED"),
        (Answer("NotFoundException", 404), Rejected, "SES_NOT_FOUND"),
        (Answer("BadRequestException"), Rejected, "SES_BAD_REQUEST"),
        (Answer("AccessDeniedException", 403), Rejected, "SES_ACCESS_DENIED"),
        (Answer("ExpiredTokenException", 403), Rejected, "SES_EXPIRED_TOKEN"),
        (Answer("SignatureDoesNotMatch", 403), Rejected, "SES_SIGNATURE_DOES_NOT_MATCH"),
        # Of the 500s, those in which SES says that it did nothing.
        (Answer("ConcurrentModificationException", 500), Deferred, "SES_CONCURRENT_MODIFICATION"),
        (Answer("ServiceUnavailableException", 503), Deferred, "SES_SERVICE_UNAVAILABLE"),
        (Answer("ThrottlingException", 503), Deferred, "SES_THROTTLING"),
        # The others leave it open whether the mail was accepted before something broke.
        (Answer("InternalServiceErrorException", 500), Unknown, "SES_INTERNAL_SERVICE_ERROR"),
        (Answer("InternalFailure", 500), Unknown, "SES_INTERNAL_FAILURE"),
        (Answer("RequestTimeoutException", 408), Unknown, "SES_TIMEOUT"),
        (Answer("", 502), Unknown, "SES_502"),
        (Answer("", 504), Unknown, "SES_504"),
        # An unknown error is retryable; it was a refusal all the same.
        (Answer("TeapotException", 418), Deferred, "SES_TEAPOT"),
        (Answer("", 403), Deferred, "SES_403"),
    ],
    ids=lambda given: f"{given.name}-{given.status}" if isinstance(given, Answer) else None,
)
async def test_each_error_of_the_send_call(answer: Answer, kind: type[Outcome], code: str) -> None:
    """By its name, where it has one; the library repeats nothing."""
    async with an_account(answer) as (twin, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, kind)
    assert failure_of(outcome).code.startswith(code)
    assert (twin.calls, twin.mails) == (1, [])


async def test_error_of_ses_is_kept() -> None:
    """Its name is the original code, its message is the reason."""
    text = "Maximum sending rate exceeded."
    async with an_account(Answer("TooManyRequestsException", 429, text)) as (_, provider):
        failure = failure_of(await sent(provider))

    assert failure.original_code == "TooManyRequestsException"
    assert failure.reason == text
    assert (failure.category, failure.scope) == (Category.QUOTA_ERROR, Scope.PROVIDER)


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        ("7", timedelta(seconds=7)),
        ("99999", timedelta(days=1)),
        ("9999999", ZERO),
        ("-1", ZERO),
        ("Fri, 01 Jan 2027 00:00:00 GMT", ZERO),
    ],
)
async def test_retry_after_of_ses_is_passed_on(asked: str, wait: timedelta) -> None:
    """In seconds, within reason."""
    throttled = Answer("TooManyRequestsException", 429, headers={"Retry-After": asked})
    async with an_account(throttled) as (_, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert outcome.retry_after == wait


async def test_answer_of_500_to_an_accepted_mail_is_in_doubt() -> None:
    """It was delivered; as a refusal it would be delivered again through the next provider."""
    broken = Answer("InternalServiceErrorException", 500, accepts=True)
    async with an_account(broken) as (twin, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Unknown)
    assert len(twin.mails) == 1


@pytest.mark.parametrize(
    "text",
    [
        HTML,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{<<",
        b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\nConnection: close\r\n\r\n{",
        b"250 2.0.0 Ok\r\n\r\n",
    ],
    ids=["a-proxys-page", "no-id", "no-json", "cut-off", "no-http"],
)
async def test_answer_of_another_server_proves_nothing(text: bytes) -> None:
    """A proxy in between, or half an answer: the mail may have been accepted."""
    async with an_account(Say(text)) as (twin, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Unknown)
    assert len(twin.mails) == 1


@pytest.mark.parametrize("told", [12345, {"a": 1}, ["x"], True])
async def test_id_that_is_not_a_text_is_stored(told: object) -> None:
    """The mail was accepted, with any form of id."""
    body = json.dumps({"MessageId": told}).encode()
    taken = Say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    async with an_account(taken) as (_, provider):
        outcome = await sent(provider)

    assert id_of(outcome) == str(told)


async def test_connection_is_reused_after_a_refusal() -> None:
    """An error is an answer like any other."""
    async with an_account(Answer("MessageRejected")) as (twin, provider):
        await sent(provider)
        after = await sent(provider)

    assert id_of(after) == twin.mails[0].id
    assert twin.connections == 1


async def test_unverified_sender_is_reported() -> None:
    """With the text of SES, which names the identity."""
    async with an_account() as (twin, provider):
        twin.unverified.add("loja@example.com")
        failure = failure_of(await sent(provider))

    assert failure.code == "SES_MESSAGE_REJECTED"
    assert "not verified" in failure.reason

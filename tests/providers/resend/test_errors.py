"""Errors of Resend, by name: each documented one has its verdict."""

import pytest

from carteiro.model import Deferred, Outcome, Rejected, Unknown
from support.resend_sending import a_provider, an_account
from support.resend_twin import ERRORS, Say, SayRaw
from support.sending import a_mail, failure_of, sent

_LATER = {
    "concurrent_idempotent_requests",
    "daily_quota_exceeded",
    "monthly_quota_exceeded",
    "rate_limit_exceeded",
}
_UNSURE = {"application_error", "internal_server_error"}


def _expected(name: str) -> type[Outcome]:
    if name in _UNSURE:
        return Unknown
    return Deferred if name in _LATER else Rejected


@pytest.mark.parametrize("name", ERRORS)
async def test_every_documented_error_has_its_verdict(name: str) -> None:
    """Its name is the code, its message is the reason."""
    async with an_account(Say(name)) as (twin, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, _expected(name))
    failure = failure_of(outcome)
    assert failure.code == f"RESEND_{name.upper()}"
    assert failure.original_code == name
    assert failure.reason == ERRORS[name][1]
    assert failure.rule == f"resend.{name}"
    assert twin.deliveries == []


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *((status, Deferred) for status in (302, 400, 401, 403, 404, 405, 407, 413, 418, 429, 451)),
        *((status, Unknown) for status in (408, 500, 599)),
    ],
)
async def test_answer_without_a_name_ends_no_message(status: int, expected: type[Outcome]) -> None:
    """A proxy in between does not answer JSON, nor does a server at a wrong address."""
    async with an_account(SayRaw(status, b"<h1>No</h1>")) as (_, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, expected)
    assert failure_of(outcome).reason == f"HTTP {status}: <h1>No</h1>"


async def test_wrong_key_is_reported_without_it() -> None:
    """Nothing of it may get into a reason, which is stored and shown."""
    async with an_account() as (twin, _), a_provider(twin, api_key="re_wrong_4f1c") as provider:
        outcome = await sent(provider)

    assert failure_of(outcome).code == "RESEND_INVALID_API_KEY"
    assert "4f1c" not in repr(outcome)
    assert "4f1c" not in repr(provider._options)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"from": "loja@other.example"}, "RESEND_VALIDATION_ERROR"),
        ({"to": "josé@example.com"}, "RESEND_VALIDATION_ERROR"),
    ],
)
async def test_invalid_mail_is_refused_by_resend(fields: dict[str, str], code: str) -> None:
    """We do not guess its rules."""
    async with an_account() as (twin, provider):
        outcome = await sent(provider, a_mail(**fields))

    assert isinstance(outcome, Rejected)
    assert outcome.failure.code == code
    assert twin.deliveries == []

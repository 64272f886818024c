"""Whether an account could be used, and how much of it: asked before any mail is at stake."""

from typing import Any

import pytest

from carteiro.ports.provider import Quota
from support.services import free_port
from support.ses_sending import a_provider, an_account
from support.ses_twin import ACCOUNT, HOST, Answer


async def test_an_account_that_may_send_can_be_used() -> None:
    """Its keys are good, it has left the sandbox; no mail is sent."""
    async with an_account() as (twin, provider):
        fault = await provider.check()

    assert fault is None
    assert (twin.connections, twin.calls) == (1, 0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"SendingEnabled": False}, "sending is disabled"),
        ({"ProductionAccessEnabled": False}, "in the sandbox"),
        ({"EnforcementStatus": "SHUTDOWN"}, "SHUTDOWN"),
        ({"SendQuota": {"Max24HourSend": 200.0, "SentLast24Hours": 200.0}}, "200 mails"),
    ],
)
async def test_what_an_owner_should_know_is_told(changes: dict[str, Any], said: str) -> None:
    """Before mail waits because of it."""
    async with an_account(account={**ACCOUNT, **changes}) as (_, provider):
        fault = await provider.check()

    assert fault is not None
    assert said in fault


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer("AccessDeniedException", 403, "User: arn:… is not authorized"), "not permitted"),
        (Answer("UnrecognizedClientException", 403, "The token is invalid."), "token is invalid"),
    ],
)
async def test_keys_that_do_not_fit_are_told(answer: Answer, said: str) -> None:
    """A key that may only send is no fault of the account; it is told that nobody could look."""
    async with an_account(account=answer) as (_, provider):
        fault = await provider.check()

    assert fault is not None
    assert said in fault


async def test_an_endpoint_that_is_not_there_is_told() -> None:
    """Nobody listens."""
    async with a_provider(f"http://{HOST}:{free_port()}") as provider:
        assert await provider.check()


async def test_what_may_be_sent_is_what_the_account_says() -> None:
    """For whoever sets the pace."""
    async with an_account() as (_, provider):
        quota = await provider.quota()

    assert quota == Quota(per_second=14.0, per_day=50_000, sent_last_day=12)


async def test_a_quota_without_an_end_is_told_as_such() -> None:
    """SES says -1."""
    endless = {"Max24HourSend": -1.0, "MaxSendRate": 500.0, "SentLast24Hours": 7.0}
    async with an_account(account={**ACCOUNT, "SendQuota": endless}) as (_, provider):
        quota = await provider.quota()
        fault = await provider.check()

    assert quota == Quota(per_second=500.0, per_day=None, sent_last_day=7)
    assert fault is None


@pytest.mark.parametrize("account", [Answer("AccessDeniedException", 403), {}])
async def test_without_an_answer_there_is_no_quota(account: Any) -> None:
    """Not permitted, or not said."""
    async with an_account(account=account) as (_, provider):
        assert await provider.quota() is None

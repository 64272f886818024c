"""Checks of an account and its quota, before any mail is sent."""

from typing import Any

import pytest

from carteiro.ports.provider import Quota
from support.sending import SENDER
from support.services import free_port
from support.ses_sending import a_provider, an_account
from support.ses_twin import ACCOUNT, HOST, Answer


async def test_account_that_may_send_can_be_used() -> None:
    """Its keys are valid, it has left the sandbox, set and sender exist; no mail is sent."""
    async with an_account(configuration_set="mail") as (twin, provider):
        twin.configuration_sets.add("mail")
        faults = await provider.check()

    assert faults == []
    assert (twin.connections, twin.calls) == (1, 0)


@pytest.mark.parametrize(
    ("changes", "said", "deadly"),
    [
        ({"SendingEnabled": False}, "sending is disabled", True),
        ({"ProductionAccessEnabled": False}, "in the sandbox", False),
        ({"EnforcementStatus": "SHUTDOWN"}, "SHUTDOWN", True),
        ({"EnforcementStatus": "PROBATION"}, "PROBATION", False),
        ({"SendQuota": {"Max24HourSend": 200.0, "SentLast24Hours": 200.0}}, "200 mails", False),
    ],
)
async def test_limits_of_the_account_are_reported(
    changes: dict[str, Any], said: str, *, deadly: bool
) -> None:
    """Before mail waits because of them, or fails."""
    async with an_account(account={**ACCOUNT, **changes}) as (_, provider):
        [fault] = await provider.check()

    assert said in fault.told
    assert (fault.is_deadly, bool(fault.advice)) == (deadly, True)


@pytest.mark.parametrize(
    ("answer", "said", "deadly"),
    [
        (Answer("AccessDeniedException", 403, "User: arn:…"), "not permitted", False),
        (Answer("UnrecognizedClientException", 403, "Wrong."), "UnrecognizedClient", True),
        (Answer("SignatureDoesNotMatch", 403, "Wrong."), "SignatureDoesNotMatch", True),
        (Answer("ThrottlingException", 400, "Slow down."), "Slow down", False),
    ],
)
async def test_invalid_keys_are_reported(answer: Answer, said: str, *, deadly: bool) -> None:
    """A key for sending only is valid; the check reports that it could not look."""
    async with an_account(account=answer) as (_, provider):
        [fault] = await provider.check()

    assert said in fault.told
    assert fault.is_deadly is deadly


async def test_configuration_set_that_would_refuse_mail_is_fatal() -> None:
    """It is missing, or it is paused: each mail would be refused."""
    async with an_account(configuration_set="mail") as (twin, provider):
        [missing] = await provider.check()
        twin.configuration_sets.add("mail")
        twin.paused.add("mail")
        [paused] = await provider.check()

    assert "no configuration set 'mail'" in missing.told
    assert "disabled for the configuration set 'mail'" in paused.told
    assert missing.is_deadly
    assert paused.is_deadly


@pytest.mark.parametrize(
    ("identities", "unverified", "is_told"),
    [
        ({"example.com"}, set(), False),
        ({SENDER}, set(), False),
        (set(), set(), True),
        ({"com"}, set(), True),
        ({"example.com", SENDER}, {SENDER}, False),
        ({"example.com", SENDER}, {SENDER, "example.com"}, True),
    ],
)
async def test_unverified_sender_is_fatal(
    identities: set[str], unverified: set[str], *, is_told: bool
) -> None:
    """The address or its domain must be verified, in this very region."""
    async with an_account() as (twin, provider):
        twin.identities, twin.unverified = identities, unverified
        faults = await provider.check()

    assert [fault.is_deadly for fault in faults] == [True] * is_told
    assert all(SENDER in fault.told for fault in faults)


async def test_missing_permission_is_reported_and_not_fatal() -> None:
    """A key for sending only can send."""
    async with an_account(configuration_set="mail") as (twin, provider):
        twin.forbidden = {"configuration-sets", "identities"}
        faults = await provider.check()

    assert [fault.told.partition(" ")[0] for fault in faults] == [
        "ses:GetConfigurationSet",
        "ses:GetEmailIdentity",
    ]
    assert not any(fault.is_deadly for fault in faults)


async def test_domain_covers_its_subdomains() -> None:
    """As in SES."""
    async with an_account(default_from="loja@mail.shop.example.com") as (_, provider):
        assert await provider.check() == []


async def test_unreachable_endpoint_is_reported() -> None:
    """Mail waits."""
    async with a_provider(f"http://{HOST}:{free_port()}") as provider:
        [fault] = await provider.check()

    assert not fault.is_deadly


async def test_missing_region_is_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither set nor found: no call can be made."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    async with a_provider("", region="") as provider:
        [fault] = await provider.check()

    assert (fault.is_deadly, fault.advice) == (True, "set ses.region")


async def test_quota_is_that_of_the_account() -> None:
    """For the rate limiter."""
    async with an_account() as (_, provider):
        quota = await provider.quota()

    assert quota == Quota(per_second=14.0, per_day=50_000, sent_last_day=12)


async def test_unlimited_quota_is_reported_as_unlimited() -> None:
    """SES says -1."""
    endless = {"Max24HourSend": -1.0, "MaxSendRate": 500.0, "SentLast24Hours": 7.0}
    async with an_account(account={**ACCOUNT, "SendQuota": endless}) as (_, provider):
        quota = await provider.quota()
        faults = await provider.check()

    assert quota == Quota(per_second=500.0, per_day=None, sent_last_day=7)
    assert faults == []


@pytest.mark.parametrize("account", [Answer("AccessDeniedException", 403), {}])
async def test_no_quota_without_an_answer(account: Any) -> None:
    """Not permitted, or missing."""
    async with an_account(account=account) as (_, provider):
        assert await provider.quota() is None

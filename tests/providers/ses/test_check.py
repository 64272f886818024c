"""Whether an account could be used, and how much of it: asked before any mail is at stake."""

from typing import Any

import pytest

from carteiro.ports.provider import Quota
from support.sending import SENDER
from support.services import free_port
from support.ses_sending import a_provider, an_account
from support.ses_twin import ACCOUNT, HOST, Answer


async def test_an_account_that_may_send_can_be_used() -> None:
    """Its keys are good, it has left the sandbox, set and sender are there; no mail is sent."""
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
async def test_what_an_owner_should_know_is_told(
    changes: dict[str, Any], said: str, *, deadly: bool
) -> None:
    """Before mail waits because of it, or dies."""
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
async def test_keys_that_do_not_fit_are_told(answer: Answer, said: str, *, deadly: bool) -> None:
    """A key that may only send is no fault of the account; it is told that nobody could look."""
    async with an_account(account=answer) as (_, provider):
        [fault] = await provider.check()

    assert said in fault.told
    assert fault.is_deadly is deadly


async def test_a_configuration_set_that_would_refuse_mail_is_deadly() -> None:
    """It is not there, or it is paused: each mail would be refused."""
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
async def test_a_sender_that_is_not_verified_is_deadly(
    identities: set[str], unverified: set[str], *, is_told: bool
) -> None:
    """The address or its domain must be, in this very region."""
    async with an_account() as (twin, provider):
        twin.identities, twin.unverified = identities, unverified
        faults = await provider.check()

    assert [fault.is_deadly for fault in faults] == [True] * is_told
    assert all(SENDER in fault.told for fault in faults)


async def test_what_may_not_be_looked_at_is_told_and_not_deadly() -> None:
    """Whoever may only send, sends."""
    async with an_account(configuration_set="mail") as (twin, provider):
        twin.forbidden = {"configuration-sets", "identities"}
        faults = await provider.check()

    assert [fault.told.partition(" ")[0] for fault in faults] == [
        "ses:GetConfigurationSet",
        "ses:GetEmailIdentity",
    ]
    assert not any(fault.is_deadly for fault in faults)


async def test_a_domain_stands_for_those_below_it() -> None:
    """As SES has it."""
    async with an_account(default_from="loja@mail.shop.example.com") as (_, provider):
        assert await provider.check() == []


async def test_an_endpoint_that_is_not_there_is_told() -> None:
    """Nobody listens: mail waits."""
    async with a_provider(f"http://{HOST}:{free_port()}") as provider:
        [fault] = await provider.check()

    assert not fault.is_deadly


async def test_a_missing_region_is_deadly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither set nor found: no call can be made."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    async with a_provider("", region="") as provider:
        [fault] = await provider.check()

    assert (fault.is_deadly, fault.advice) == (True, "set ses.region")


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
        faults = await provider.check()

    assert quota == Quota(per_second=500.0, per_day=None, sent_last_day=7)
    assert faults == []


@pytest.mark.parametrize("account", [Answer("AccessDeniedException", 403), {}])
async def test_without_an_answer_there_is_no_quota(account: Any) -> None:
    """Not permitted, or not said."""
    async with an_account(account=account) as (_, provider):
        assert await provider.quota() is None

"""Checks of SES before any mail is sent: the account, the configuration set, the sender."""

from collections.abc import Awaitable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from carteiro.email.mime import mail_address
from carteiro.ports.provider import Fault, fault_of
from carteiro.providers.ses.failures import NOT_PERMITTED, broke, name_of
from carteiro.providers.ses.rules import classify_ses
from carteiro.providers.ses.settings import SesSettings

_MISSING = "NotFoundException"
_KEYS = "check the keys and the region that are set, or that AWS' tools find: carteiro config show"
_ALLOW = "allow it, or check it yourself; mail is sent anyway"
_FEWEST_LABELS = 2  # a top-level domain cannot be verified


async def faults(client: Any, options: SesSettings) -> list[Fault]:  # noqa: ANN401 - botocore makes its clients as it runs
    """Problems and hints; nothing is sent."""
    account = await _asked("ses:GetAccount", client.get_account())
    if isinstance(account, Fault) and account.advice != _ALLOW:
        return [account]  # any other question would get the same answer
    found = [account] if isinstance(account, Fault) else _of_account(account or {})
    if options.configuration_set:
        found += await _of_configuration_set(client, options.configuration_set)
    if options.default_from:
        found += await _of_sender(client, mail_address(options.default_from))
    return found


async def _asked(permission: str, call: Awaitable[dict[str, Any]]) -> dict[str, Any] | Fault | None:
    """The answer of SES, or its failure; None: not found."""
    try:
        return await call
    except ClientError as error:
        name = name_of(error)
        if name == _MISSING:
            return None
        if name in NOT_PERMITTED:
            told = f"{permission} is not permitted, so this was not checked"
            return Fault(told, _ALLOW)
        failure = classify_ses(name, f"{name}: {error}")
        return fault_of(failure, _KEYS)
    except BotoCoreError as error:
        return fault_of(broke(error), _KEYS)


def _of_account(account: dict[str, Any]) -> list[Fault]:
    """Facts that an account's owner should know before mail is sent."""
    quota = account.get("SendQuota", {})
    standing = account.get("EnforcementStatus", "HEALTHY")
    found = []
    if not account.get("SendingEnabled", True):
        told = "sending is disabled for the account in this region"
        found.append(Fault(told, "enable it in SES, or ask AWS why it was", is_deadly=True))
    if standing != "HEALTHY":
        told, advice = f"the account's standing is {standing}", "see the account's mail from AWS"
        found.append(Fault(told, advice, is_deadly=standing == "SHUTDOWN"))
    if not account.get("ProductionAccessEnabled", True):
        told = "the account is in the sandbox of SES: only verified addresses get mail"
        found.append(Fault(told, "ask AWS for production access in this region"))
    if 0 < quota.get("Max24HourSend", 0) <= quota.get("SentLast24Hours", 0):
        told = f"the quota of {quota['Max24HourSend']:,.0f} mails in 24 hours is used up"
        found.append(Fault(told, "mail waits; ask AWS for a larger quota if it lasts"))
    return found


async def _of_configuration_set(client: Any, name: str) -> list[Fault]:  # noqa: ANN401 - as above
    call = client.get_configuration_set(ConfigurationSetName=name)
    found = await _asked("ses:GetConfigurationSet", call)
    if isinstance(found, Fault):
        return [found]
    if found is None:
        advice = "make it there, or correct ses.configuration_set"
        return [Fault(f"no configuration set {name!r} in this region", advice, is_deadly=True)]
    if not found.get("SendingOptions", {}).get("SendingEnabled", True):
        told = f"sending is disabled for the configuration set {name!r}"
        return [Fault(told, "enable it in SES, or name another one", is_deadly=True)]
    return []


async def _of_sender(client: Any, address: str) -> list[Fault]:  # noqa: ANN401 - as above
    for identity in (address, *_domains(address)):
        call = client.get_email_identity(EmailIdentity=identity)
        found = await _asked("ses:GetEmailIdentity", call)
        if isinstance(found, Fault):
            return [found]
        if found and found.get("VerifiedForSendingStatus"):
            return []
    told = f"neither {address} nor its domain is verified in this region"
    return [Fault(told, "verify one in SES, or correct ses.default_from", is_deadly=True)]


def _domains(address: str) -> list[str]:
    """The domain of an address and those above it: each can stand for the sender."""
    labels = address.rpartition("@")[2].split(".")
    return [".".join(labels[at:]) for at in range(len(labels) - _FEWEST_LABELS + 1)]

"""The providers that the contract suite runs on: one line each.

With ``PROVIDER_UNDER_TEST=NAME`` it runs on that provider alone, from any package.
"""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest

from carteiro.config import load, spec_of
from carteiro.model import InboxMail, MessageId, Outcome, Taken
from carteiro.ports import Backend, Features, Handover, Parcel, Provider
from carteiro.ports.provider import RemoteProvider
from carteiro.providers.noop.provider import NoopProvider
from carteiro.providers.registry import make_provider
from carteiro.providers.sandbox.provider import SandboxProvider
from support import resend_sending, ses_sending
from support.builders import ACME
from support.delivered import Delivered
from support.resend_twin import Delivery
from support.ses_twin import Mail
from support.smtp_sending import a_relay
from support.smtp_server import Envelope


@dataclass(frozen=True)
class ProviderSetUp:
    """A provider under test, and its opening with visible deliveries."""

    name: str
    opens: Callable[[Delivered], AbstractAsyncContextManager[Provider]]

    @property
    def features(self) -> Features:
        """The features in its spec."""
        return spec_of(self.name).features


@asynccontextmanager
async def _noop(_inbox: Delivered) -> AsyncIterator[Provider]:
    yield NoopProvider()


@asynccontextmanager
async def _sandbox(inbox: Delivered) -> AsyncIterator[Provider]:
    yield SandboxProvider(inbox)


@asynccontextmanager
async def _smtp(inbox: Delivered) -> AsyncIterator[Provider]:
    def keep(mail: Envelope) -> None:
        server.mails.append(mail)
        found = InboxMail(MessageId(""), ACME, mail.recipients[0], "", "", str(len(server.mails)))
        inbox.mails.append(found)

    async with a_relay() as (server, provider):
        server.on_mail = keep
        yield provider


@asynccontextmanager
async def _resend(inbox: Delivered) -> AsyncIterator[Provider]:
    def keep(mail: Delivery) -> None:
        found = InboxMail(MessageId(""), ACME, mail.letter["to"][0], "", "", mail.id)
        inbox.mails.append(found)

    async with resend_sending.an_account(on_mail=keep) as (_, provider):
        yield provider


@asynccontextmanager
async def _ses(inbox: Delivered) -> AsyncIterator[Provider]:
    def keep(mail: Mail) -> None:
        found = InboxMail(MessageId(""), ACME, mail.to[0], "", "", mail.id)
        inbox.mails.append(found)

    async with ses_sending.an_account() as (twin, provider):
        twin.on_mail = keep
        yield provider


class _Counted:
    """A provider known by its answers alone: deliveries are counted by its ids."""

    def __init__(self, provider: Provider, inbox: Delivered) -> None:
        self.name, self.features = provider.name, provider.features
        self._provider = provider
        self._inbox = inbox

    async def deliver(self, parcel: Parcel, handover: Handover) -> Outcome:
        outcome = await self._provider.deliver(parcel, handover)
        known = {mail.provider_id for mail in await self._inbox.list()}
        if isinstance(outcome, Taken) and outcome.provider_id not in known:
            mail = InboxMail(parcel.message, ACME, "", "", "", outcome.provider_id)
            await self._inbox.keep([mail])
        return outcome


@asynccontextmanager
async def _installed(inbox: Delivered) -> AsyncIterator[Provider]:
    world = cast("Backend", SimpleNamespace(inbox=inbox))
    provider = make_provider(OTHER, load(), world)
    yield _Counted(provider, inbox)
    if isinstance(provider, RemoteProvider):
        await provider.close()


OTHER = os.environ.get("PROVIDER_UNDER_TEST", "")
OWN = (
    ProviderSetUp("sandbox", _sandbox),
    ProviderSetUp("noop", _noop),
    ProviderSetUp("smtp", _smtp),
    ProviderSetUp("resend", _resend),
    ProviderSetUp("ses", _ses),
)


SET_UPS = (ProviderSetUp(OTHER, _installed),) if OTHER else OWN
REPLAYING = [each for each in SET_UPS if each.features.replays_for is not None]


@pytest.fixture
def world() -> Delivered:
    return Delivered()


@pytest.fixture(params=SET_UPS, ids=lambda set_up: set_up.name)
async def provider(request: pytest.FixtureRequest, world: Delivered) -> AsyncIterator[Provider]:
    chosen: ProviderSetUp = request.param
    async with chosen.opens(world) as opened:
        yield opened


@pytest.fixture(params=REPLAYING, ids=lambda set_up: set_up.name)
async def replaying(request: pytest.FixtureRequest, world: Delivered) -> AsyncIterator[Provider]:
    """A provider that recognises repeated calls."""
    chosen: ProviderSetUp = request.param
    async with chosen.opens(world) as opened:
        yield opened

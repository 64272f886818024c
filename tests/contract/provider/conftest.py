"""The providers that the contract suite runs on: one line each."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import pytest

from carteiro.model import InboxMail, MessageId
from carteiro.ports import Features, Provider
from carteiro.providers.noop import NoopProvider
from carteiro.providers.resend import ResendProvider
from carteiro.providers.sandbox import SandboxProvider
from carteiro.providers.ses import SesProvider
from carteiro.providers.smtp import SmtpProvider
from support import resend_sending, ses_sending
from support.builders import ACME
from support.delivered import Delivered
from support.resend_twin import Delivery
from support.ses_twin import Mail
from support.smtp_sending import a_relay
from support.smtp_server import Envelope


@dataclass(frozen=True)
class ProviderSetUp:
    """A provider under test, and how it is opened so that what it delivers is seen."""

    name: str
    opens: Callable[[Delivered], AbstractAsyncContextManager[Provider]]
    features: Features


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


SET_UPS = (
    ProviderSetUp("sandbox", _sandbox, SandboxProvider.features),
    ProviderSetUp("noop", _noop, NoopProvider.features),
    ProviderSetUp("smtp", _smtp, SmtpProvider.features),
    ProviderSetUp("resend", _resend, ResendProvider.features),
    ProviderSetUp("ses", _ses, SesProvider.features),
)


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
    """A provider that says it knows calls again."""
    chosen: ProviderSetUp = request.param
    async with chosen.opens(world) as opened:
        yield opened

"""The providers that the contract suite runs on: one line each."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import pytest

from carteiro.model import InboxMail, MessageId
from carteiro.ports import Backend, Features, Inbox, Provider
from carteiro.providers.noop.provider import NoopProvider
from carteiro.providers.resend.provider import ResendProvider
from carteiro.providers.sandbox.provider import SandboxProvider
from carteiro.providers.ses.provider import SesProvider
from carteiro.providers.smtp.provider import SmtpProvider
from carteiro.stores.memory import open_memory
from support import resend_sending, ses_sending
from support.builders import ACME
from support.resend_twin import Delivery
from support.ses_twin import Mail
from support.smtp_sending import a_relay
from support.smtp_server import Envelope


@dataclass(frozen=True)
class ProviderSetUp:
    """A provider under test, and how it is opened so that what it delivers is seen in the inbox."""

    name: str
    opens: Callable[[Inbox], AbstractAsyncContextManager[Provider]]
    features: Features


@asynccontextmanager
async def _noop(_inbox: Inbox) -> AsyncIterator[Provider]:
    yield NoopProvider()


@asynccontextmanager
async def _sandbox(inbox: Inbox) -> AsyncIterator[Provider]:
    yield SandboxProvider(inbox)


@asynccontextmanager
async def _smtp(inbox: Inbox) -> AsyncIterator[Provider]:
    keeping: set[asyncio.Future[None]] = set()

    def keep(mail: Envelope) -> None:
        server.mails.append(mail)
        found = InboxMail(MessageId(""), ACME, mail.recipients[0], "", "", str(len(server.mails)))
        keeping.add(asyncio.ensure_future(inbox.keep([found])))

    async with a_relay() as (server, provider):
        server.on_mail = keep
        yield provider
    await asyncio.gather(*keeping)


@asynccontextmanager
async def _resend(inbox: Inbox) -> AsyncIterator[Provider]:
    keeping: set[asyncio.Future[None]] = set()

    def keep(mail: Delivery) -> None:
        found = InboxMail(MessageId(""), ACME, mail.letter["to"][0], "", "", mail.id)
        keeping.add(asyncio.ensure_future(inbox.keep([found])))

    async with resend_sending.an_account(on_mail=keep) as (_, provider):
        yield provider
    await asyncio.gather(*keeping)


@asynccontextmanager
async def _ses(inbox: Inbox) -> AsyncIterator[Provider]:
    keeping: set[asyncio.Future[None]] = set()

    def keep(mail: Mail) -> None:
        found = InboxMail(MessageId(""), ACME, mail.to[0], "", "", mail.id)
        keeping.add(asyncio.ensure_future(inbox.keep([found])))

    async with ses_sending.an_account() as (twin, provider):
        twin.on_mail = keep
        yield provider
    await asyncio.gather(*keeping)


SET_UPS = (
    ProviderSetUp("sandbox", _sandbox, SandboxProvider.features),
    ProviderSetUp("noop", _noop, NoopProvider.features),
    ProviderSetUp("smtp", _smtp, SmtpProvider.features),
    ProviderSetUp("resend", _resend, ResendProvider.features),
    ProviderSetUp("ses", _ses, SesProvider.features),
)


REPLAYING = [each for each in SET_UPS if each.features.replays_for is not None]


@pytest.fixture
async def world() -> AsyncIterator[Backend]:
    async with open_memory() as backend:
        yield backend


@pytest.fixture(params=SET_UPS, ids=lambda set_up: set_up.name)
async def provider(request: pytest.FixtureRequest, world: Backend) -> AsyncIterator[Provider]:
    chosen: ProviderSetUp = request.param
    async with chosen.opens(world.inbox) as opened:
        yield opened


@pytest.fixture(params=REPLAYING, ids=lambda set_up: set_up.name)
async def replaying(request: pytest.FixtureRequest, world: Backend) -> AsyncIterator[Provider]:
    """A provider that says it knows calls again."""
    chosen: ProviderSetUp = request.param
    async with chosen.opens(world.inbox) as opened:
        yield opened

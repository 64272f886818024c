"""When a call without an answer proves that nothing was handed over, and when it proves nothing."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import trustme

from carteiro.email.message import make_email
from carteiro.model import ZERO, Category, Deferred, NotMade, Taken, Unknown
from carteiro.ports import Handover, Parcel
from support.sending import SOON, failure_of, sent
from support.services import free_port
from support.ses_sending import a_provider, an_account, options_for
from support.ses_twin import HOST, Drop, Say, Stall, a_ses_twin
from support.working import LONG, a_parcel


async def test_nobody_there_is_no_doubt() -> None:
    """A connection that was refused carried nothing."""
    async with a_provider(f"http://{HOST}:{free_port()}") as provider:
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "NETWORK_ERROR"


async def test_a_name_that_nobody_knows_is_no_doubt() -> None:
    """Without an address there was no connection."""
    async with a_provider("http://ses.invalid:8080") as provider:
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "NETWORK_ERROR"


async def test_a_certificate_that_is_not_trusted_is_no_doubt() -> None:
    """The request was never written; it is a matter of settings, and told as such."""
    context = a_server_context()
    async with (
        a_ses_twin(context=context) as twin,
        a_provider(f"https://localhost:{twin.port}") as provider,
    ):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "TLS_ERROR"
    assert failure_of(outcome).category is Category.CONFIGURATION_ERROR
    assert twin.calls == 0


def a_server_context() -> ssl.SSLContext:
    """Of an authority that nobody trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    return context


@contextmanager
def a_silent_server() -> Iterator[int]:
    """The port of a server that takes connections, and says nothing."""
    listening = socket.create_server((HOST, 0))
    with listening:
        yield listening.getsockname()[1]


async def test_a_server_that_never_shakes_hands_is_no_doubt() -> None:
    """It listens and says nothing: the connection has its own limit."""
    with a_silent_server() as port:
        async with a_provider(f"https://{HOST}:{port}", connect_limit=SOON) as provider:
            outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "SES_TIMEOUT"


def a_large_mail() -> Parcel:
    """A mail of more bytes than sockets hold on their way."""
    email = make_email({"to": "ana@example.com", "subject": "s", "text": "t"})
    return a_parcel(email.model_copy(update={"text": "0123456789abcde\n" * 400_000}))


async def test_a_connection_that_broke_before_the_end_of_the_body_is_no_doubt() -> None:
    """A request that SES has not got whole it cannot have taken."""
    async with an_account(Drop("head")) as (twin, provider):
        outcome = await sent(provider, a_large_mail())
        after = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "NETWORK_ERROR"
    assert isinstance(after, Taken)
    assert len(twin.mails) == 1


async def test_an_answer_before_the_end_of_the_body_is_no_doubt() -> None:
    """Whatever it says: a request that was not there yet cannot have been taken."""
    early = Say(b"HTTP/1.1 500 Other\r\nContent-Length: 2\r\n\r\n{}", at="head")
    async with an_account(early) as (twin, provider):
        outcome = await sent(provider, a_large_mail())

    assert isinstance(outcome, Deferred)
    assert twin.mails == []


async def test_a_connection_that_broke_after_the_whole_body_is_a_doubt() -> None:
    """The mail was taken, and nobody said so; it is not called again behind our back."""
    async with an_account(Drop("body")) as (twin, provider):
        outcome = await sent(provider)
        after = await sent(provider)

    assert isinstance(outcome, Unknown)
    assert failure_of(outcome).code == "NETWORK_ERROR"
    assert isinstance(after, Taken)
    assert (twin.calls, len(twin.mails)) == (2, 2)


async def test_silence_after_the_whole_body_is_a_doubt() -> None:
    """The call's time is up while SES thinks: it is told by the code that people know."""
    handover = Handover(LONG)
    async with an_account(Stall("body")) as (twin, provider):
        call = asyncio.create_task(sent(provider, handover=handover))
        await twin.until(lambda: len(twin.mails) == 1)
        handover.await_reply(ZERO)  # no more time, from now on
        outcome = await call
        after = await sent(provider)

    assert isinstance(outcome, Unknown)
    assert failure_of(outcome).code == "SES_TIMEOUT"
    assert isinstance(after, Taken)


async def test_silence_before_the_end_of_the_body_is_no_doubt() -> None:
    """A request that SES has not got whole it cannot have taken: whatever ends the call then, it may be made again."""
    handover = Handover(LONG)
    async with an_account(Stall("head")) as (twin, provider):
        call = asyncio.create_task(sent(provider, a_large_mail(), handover=handover))
        await twin.until(lambda: twin.calls == 1)
        handover.await_reply(ZERO)  # no more time, from now on
        outcome = await call
        after = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "SES_TIMEOUT"
    assert isinstance(after, Taken)
    assert len(twin.mails) == 1


async def test_who_waits_for_a_connection_has_not_called() -> None:
    """All are in use: nobody's failure, and not charged."""
    async with an_account(Stall("body"), connections=1) as (twin, provider):
        first = asyncio.create_task(sent(provider))
        await twin.until(lambda: twin.calls == 1)
        second = await sent(provider, limit=SOON)
        first.cancel()
        await asyncio.wait([first])

    assert isinstance(second, NotMade)
    assert twin.calls == 1


async def test_no_more_connections_than_allowed() -> None:
    """Mails wait for each other, and connections are kept."""
    async with an_account(connections=2) as (twin, provider):
        outcomes = await asyncio.gather(*[sent(provider) for _ in range(10)])

    assert all(isinstance(outcome, Taken) for outcome in outcomes)
    assert (len(twin.mails), twin.connections) == (10, 2)


async def test_a_connection_that_was_closed_meanwhile_is_replaced() -> None:
    """SES closes what is idle; the next mail gets a new one."""
    async with an_account() as (twin, provider):
        await sent(provider)
        await twin.hang_up()
        after = await sent(provider)

    assert isinstance(after, Taken)
    assert twin.connections == 2


async def test_without_credentials_nothing_is_called() -> None:
    """Neither set nor found where AWS' tools look: told as a matter of settings."""
    async with an_account(access_key_id="", secret_access_key="") as (twin, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "CREDENTIALS_MISSING"
    assert twin.connections == 0


async def test_without_a_region_nothing_is_called() -> None:
    """As above."""
    async with an_account(region="", endpoint_url="") as (_, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "REGION_MISSING"


def test_options_do_not_show_the_key() -> None:
    """They may stand in an error's text."""
    assert "not-a-secret" not in repr(options_for("http://localhost"))

"""Calls without an answer: those that prove that nothing was handed over, and those that prove nothing."""

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


async def test_refused_connection_is_not_a_doubt() -> None:
    """It carried nothing."""
    async with a_provider(f"http://{HOST}:{free_port()}") as provider:
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "NETWORK_ERROR"


async def test_unknown_host_name_is_not_a_doubt() -> None:
    """Without an address there was no connection."""
    async with a_provider("http://ses.invalid:8080") as provider:
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "NETWORK_ERROR"


async def test_untrusted_certificate_is_not_a_doubt() -> None:
    """The request was never written; it is reported as a fault of the settings."""
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
    """The port of a server that takes connections, and sends nothing."""
    listening = socket.create_server((HOST, 0))
    with listening:
        yield listening.getsockname()[1]


async def test_missing_tls_handshake_is_not_a_doubt() -> None:
    """The server listens and sends nothing: the connection has its own timeout."""
    with a_silent_server() as port:
        async with a_provider(f"https://{HOST}:{port}", connect_limit=SOON) as provider:
            outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "SES_TIMEOUT"


def a_large_mail() -> Parcel:
    """A mail of more bytes than the socket buffers hold."""
    email = make_email({"to": "ana@example.com", "subject": "s", "text": "t"})
    return a_parcel(email.model_copy(update={"text": "0123456789abcde\n" * 400_000}))


async def test_connection_lost_before_the_end_of_the_body_is_not_a_doubt() -> None:
    """SES cannot have accepted half a request."""
    async with an_account(Drop("head")) as (twin, provider):
        outcome = await sent(provider, a_large_mail())
        after = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "NETWORK_ERROR"
    assert isinstance(after, Taken)
    assert len(twin.mails) == 1


async def test_answer_before_the_end_of_the_body_is_not_a_doubt() -> None:
    """With any text: half a request cannot have been accepted."""
    early = Say(b"HTTP/1.1 500 Other\r\nContent-Length: 2\r\n\r\n{}", at="head")
    async with an_account(early) as (twin, provider):
        outcome = await sent(provider, a_large_mail())

    assert isinstance(outcome, Deferred)
    assert twin.mails == []


async def test_connection_lost_after_the_whole_body_is_a_doubt() -> None:
    """The mail was accepted without an answer; the library does not repeat the call."""
    async with an_account(Drop("body")) as (twin, provider):
        outcome = await sent(provider)
        after = await sent(provider)

    assert isinstance(outcome, Unknown)
    assert failure_of(outcome).code == "NETWORK_ERROR"
    assert isinstance(after, Taken)
    assert (twin.calls, len(twin.mails)) == (2, 2)


async def test_silence_after_the_whole_body_is_a_doubt() -> None:
    """The call times out while SES works: it has the well-known code."""
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


async def test_silence_before_the_end_of_the_body_is_not_a_doubt() -> None:
    """SES cannot have accepted half a request: with any end of the call, it may be repeated."""
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


async def test_wait_for_a_connection_is_not_a_call() -> None:
    """All are in use: nobody's failure, and not charged."""
    async with an_account(Stall("body"), connections=1) as (twin, provider):
        first = asyncio.create_task(sent(provider))
        await twin.until(lambda: twin.calls == 1)
        second = await sent(provider, limit=SOON)
        first.cancel()
        await asyncio.wait([first])

    assert isinstance(second, NotMade)
    assert twin.calls == 1


async def test_connections_are_bounded() -> None:
    """Mails wait for each other, and connections are kept."""
    async with an_account(connections=2) as (twin, provider):
        outcomes = await asyncio.gather(*[sent(provider) for _ in range(10)])

    assert all(isinstance(outcome, Taken) for outcome in outcomes)
    assert (len(twin.mails), twin.connections) == (10, 2)


async def test_connection_that_was_closed_meanwhile_is_replaced() -> None:
    """SES closes idle ones; the next mail gets a new one."""
    async with an_account() as (twin, provider):
        await sent(provider)
        await twin.hang_up()
        after = await sent(provider)

    assert isinstance(after, Taken)
    assert twin.connections == 2


async def test_nothing_is_called_without_credentials() -> None:
    """Neither set nor found where AWS' tools look: reported as a fault of the settings."""
    async with an_account(access_key_id="", secret_access_key="") as (twin, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "CREDENTIALS_MISSING"
    assert twin.connections == 0


async def test_nothing_is_called_without_a_region() -> None:
    """As above."""
    async with an_account(region="", endpoint_url="") as (_, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "REGION_MISSING"


def test_options_do_not_show_the_key() -> None:
    """They may be part of an error's text."""
    assert "not-a-secret" not in repr(options_for("http://localhost"))

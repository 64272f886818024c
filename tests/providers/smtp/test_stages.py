"""Any behaviour of a relay at any stage: the outcome is right, and nothing is delivered twice."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from carteiro.errors import DeadlinePassed
from carteiro.model import Category, Deferred, Rejected, Scope, Taken, Unknown
from carteiro.ports import Handover
from carteiro.providers.smtp.provider import SmtpProvider
from support.sending import SOON, a_mail, failure_of, sent
from support.smtp_sending import a_large_mail, a_relay, options_for
from support.smtp_server import (
    EXTENSIONS,
    PASSWORD,
    USER,
    Act,
    Drop,
    Say,
    SayLate,
    Stall,
    an_smtp_server,
)

BEFORE_THE_BODY = ("greeting", "EHLO", "AUTH", "MAIL", "RCPT", "DATA")
PIPELINED = (*EXTENSIONS, "AUTH PLAIN LOGIN")
ONE_BY_ONE = tuple(each for each in PIPELINED if each != "PIPELINING")
OVER = timedelta(0)


@pytest.mark.parametrize("extensions", [PIPELINED, ONE_BY_ONE], ids=["pipelined", "one by one"])
@pytest.mark.parametrize("stage", BEFORE_THE_BODY)
async def test_silence_before_the_body_is_a_timeout(
    stage: str, extensions: tuple[str, ...]
) -> None:
    """Nothing was handed over: a retry is safe, and the reason names the stage."""
    known: dict[str, Any] = {"username": USER, "password": PASSWORD}
    async with a_relay({stage: Stall()}, extensions=extensions, command_limit=SOON, **known) as (
        server,
        provider,
    ):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert stage.upper() in failure_of(outcome).reason.upper()
    assert failure_of(outcome).code == "SMTP_TIMEOUT"
    assert failure_of(outcome).category is Category.TIMEOUT_ERROR
    assert server.mails == []


@pytest.mark.parametrize("extensions", [PIPELINED, ONE_BY_ONE], ids=["pipelined", "one by one"])
@pytest.mark.parametrize("stage", BEFORE_THE_BODY)
async def test_connection_lost_before_the_body_is_the_relays_fault(
    stage: str, extensions: tuple[str, ...]
) -> None:
    """Nothing was handed over; it is retryable, and no message's fault."""
    async with a_relay(
        {stage: Drop()}, extensions=extensions, username=USER, password=PASSWORD
    ) as (server, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "NETWORK_ERROR"
    assert failure_of(outcome).scope is Scope.PROVIDER
    assert stage.upper() in failure_of(outcome).reason.upper()
    assert server.mails == []


async def test_connection_lost_within_a_large_body_hands_nothing_over() -> None:
    """The end was never sent, so there is certainly no mail."""
    handover = Handover(100 * SOON)
    parcel = a_large_mail()
    async with a_relay({"body": Drop()}, extensions=("PIPELINING",)) as (server, provider):
        outcome = await provider.deliver(parcel, handover)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "NETWORK_ERROR"
    assert not handover.begun
    assert server.mails == []


async def test_relay_that_stops_reading_a_large_body_times_out() -> None:
    """The end was never sent."""
    never = asyncio.Event()
    plays: dict[str, Act] = {"body": SayLate("", never)}
    async with a_relay(plays, extensions=("PIPELINING",), command_limit=SOON) as (server, provider):
        outcome = await sent(provider, a_large_mail())
        never.set()

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).reason.endswith("the body")
    assert server.mails == []


async def test_answer_within_a_large_body_counts() -> None:
    """A relay may refuse before it has read all; the end is not sent after it."""
    never = asyncio.Event()
    reply = Say("552 5.3.4 Enough\r\n")
    stop = SayLate("", never)
    async with a_relay({"body": [reply, stop]}, extensions=("PIPELINING",)) as (server, provider):
        outcome = await sent(provider, a_large_mail())
        never.set()

    assert isinstance(outcome, Rejected)
    assert failure_of(outcome).original_code == "5.3.4"
    assert server.mails == []


@pytest.mark.parametrize("act", [Stall(), Drop(), Drop("250-2.0.0 Ok: que"), Say("hello?\r\n")])
async def test_missing_answer_to_the_whole_mail_is_unknown(act: Act) -> None:
    """Everything was handed over: only an answer could settle it."""
    async with a_relay({"dot": act}, reply_limit=SOON) as (server, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Unknown)
    assert len(server.mails) == 1
    assert server.connections == 1


@pytest.mark.parametrize("reply", ["354 Go on\r\n", "250-Ok\r\n550 No\r\n", "2\r\n", "\r\n"])
async def test_invalid_answer_to_the_whole_mail_is_unknown(reply: str) -> None:
    """It does not deny that the mail was accepted."""
    async with a_relay({"dot": Say(reply)}) as (_server, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Unknown)
    assert failure_of(outcome).code == "NETWORK_ERROR"


async def test_answer_to_the_whole_mail_may_take_longer_than_a_call() -> None:
    """Its own timeout counts: a call that gave up sooner would send the mail twice."""
    late = asyncio.Event()
    async with a_relay({"dot": SayLate("250 2.0.0 Ok\r\n", late)}) as (server, provider):
        call = asyncio.create_task(sent(provider, limit=SOON))
        await server.until(lambda: len(server.mails) == 1)
        await asyncio.wait([call], timeout=2 * SOON.total_seconds())
        still_waits = not call.done()
        late.set()
        outcome = await call

    assert still_waits
    assert isinstance(outcome, Taken)


async def test_each_wait_has_its_own_limit() -> None:
    """A long wait is not cut by the limit of the one before it, nor does it lengthen the next."""
    late = asyncio.Event()
    plays: dict[str, list[Act]] = {"dot": [SayLate("250 Ok: queued as LATE\r\n", late)]}
    async with a_relay(plays, command_limit=SOON) as (server, provider):
        call = asyncio.create_task(sent(provider))
        await server.until(lambda: len(server.mails) == 1)
        await asyncio.wait([call], timeout=2 * SOON.total_seconds())
        late.set()
        first = await call
        server.plays["MAIL"] = Stall()
        second = await sent(provider)

    assert first == Taken("LATE")
    assert failure_of(second).code == "SMTP_TIMEOUT"
    assert server.connections == 1


async def test_late_answer_is_ignored() -> None:
    """The next mail has another connection: a late reply must not be taken for its reply."""
    late = asyncio.Event()
    async with a_relay(
        {"dot": [SayLate("250 Ok: queued as LATE\r\n", late)]}, reply_limit=SOON
    ) as (server, provider):
        first = await sent(provider)
        late.set()
        second = await sent(provider)

    assert isinstance(first, Unknown)
    assert second == Taken("Q0002")
    assert server.connections == 2


@pytest.mark.parametrize(
    ("stage", "reply", "outcome", "code", "scope"),
    [
        ("greeting", "421 4.3.2 Too busy", Deferred, "421", Scope.PROVIDER),
        ("greeting", "554 5.7.1 Go away", Deferred, "554", Scope.PROVIDER),
        ("EHLO", "502 5.5.1 What?", Deferred, "502", Scope.PROVIDER),
        ("MAIL", "451 4.3.0 Later", Deferred, "451", Scope.PROVIDER),
        ("MAIL", "550 No", Rejected, "550", Scope.PROVIDER),
        ("MAIL", "550 5.7.1 SPF fails", Rejected, "550", Scope.PROVIDER),
        ("RCPT", "450 4.2.0 Greylisted", Deferred, "450", Scope.DESTINATION),
        ("RCPT", "452 4.2.2 Full", Deferred, "452", Scope.RECIPIENT),
        ("RCPT", "550 5.1.1 No such user", Rejected, "550", Scope.RECIPIENT),
        ("RCPT", "550-5.1.1 No\r\n550 5.1.1 such user", Rejected, "550", Scope.RECIPIENT),
        ("DATA", "451 4.3.0 Later", Deferred, "451", Scope.DESTINATION),
        ("DATA", "554 5.5.1 No", Rejected, "554", Scope.MESSAGE),
        ("DATA", "250 Ok", Deferred, "250", Scope.PROVIDER),
        ("dot", "421 4.3.2 Going down", Deferred, "421", Scope.DESTINATION),
        ("dot", "451 4.7.1 Try again later", Deferred, "451", Scope.DESTINATION),
        ("dot", "550 No", Rejected, "550", Scope.MESSAGE),
        ("dot", "554 5.6.0 Spam", Rejected, "554", Scope.MESSAGE),
    ],
)
@pytest.mark.parametrize("extensions", [PIPELINED, ONE_BY_ONE], ids=["pipelined", "one by one"])
@pytest.mark.parametrize("closes", [False, True], ids=["stays", "closes"])
async def test_refusal_is_an_answer(
    stage: str,
    reply: str,
    outcome: type,
    code: str,
    scope: Scope,
    extensions: tuple[str, ...],
    closes: bool,
) -> None:
    """At any stage, and with or without a closed connection: no mail, no doubt."""
    text = f"{reply}\r\n"
    act: Act = Drop(text) if closes else Say(text)
    async with a_relay({stage: act}, extensions=extensions) as (server, provider):
        said = await sent(provider)

    assert isinstance(said, outcome)
    assert (failure_of(said).code, failure_of(said).scope) == (code, scope)
    assert failure_of(said).rule.endswith(f"@{stage.lower()}")
    assert server.mails == []


@pytest.mark.parametrize("stage", ["greeting", "EHLO", "MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize(
    "text", ["HTTP/1.1 400 Bad\r\n", "\udcff\udcfe\r\n", "25\r\n", "999 x\r\n"]
)
async def test_garbage_is_not_a_reply(stage: str, text: str) -> None:
    """The server is not a relay; nothing was handed over, and the connection is closed."""
    async with a_relay({stage: Say(text)}, command_limit=SOON) as (server, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "NETWORK_ERROR"
    assert server.mails == []


@pytest.mark.parametrize("text", ["220" + "x" * 70_000, "220-x\r\n" * 20_000])
async def test_endless_reply_is_not_waited_for(text: str) -> None:
    """It would fill the memory before the timeout."""
    async with a_relay({"greeting": Say(text)}) as (_server, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert "no end" in failure_of(outcome).reason


async def test_relay_that_never_stops_talking_is_disconnected() -> None:
    """Unasked replies on an idle connection would fill the memory."""
    async with a_relay() as (server, provider):
        await sent(provider)
        server.say_unasked("250 more\r\n" * 20)
        await server.until(lambda: server.closed == 1)

    assert server.said("QUIT") == 0


async def test_reply_of_many_lines_is_one_reply() -> None:
    """However it is cut on its way."""
    greeting = "".join(f"220-{line}\r\n" for line in range(200)) + "220 mail.test\r\n"
    async with a_relay({"greeting": Say(greeting)}) as (_server, provider):
        assert isinstance(await sent(provider), Taken)


async def test_refused_connection_is_the_relays_fault() -> None:
    """It proves that nothing was handed over."""
    async with an_smtp_server() as server:
        pass
    provider = SmtpProvider(options_for(server))

    outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "NETWORK_ERROR"
    assert failure_of(outcome).scope is Scope.PROVIDER


@pytest.mark.parametrize("text", ["421 4.4.2 Bye\r\n", "hello?\r\n", "250 unasked\r\n", "250-un"])
async def test_mail_is_not_sent_when_more_comes_than_the_answer_to_its_envelope(text: str) -> None:
    """It would be taken for the answer to the whole mail."""
    more = Say(f"354 Go on\r\n{text}")
    async with a_relay({"DATA": [more]}, reply_limit=SOON) as (server, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert server.mails == []


async def test_call_past_its_deadline_sends_no_end() -> None:
    """A process that slept hands nothing over: the relay drops the incomplete mail."""
    async with a_relay() as (server, provider):
        await sent(provider)  # so that there is a connection

        with pytest.raises(DeadlinePassed):
            await provider.deliver(a_mail(), Handover(OVER))
        await server.until(lambda: server.closed == 1)

    assert len(server.mails) == 1


async def test_timeout_of_the_call_bounds_all_stages_together() -> None:
    """Stages within their own timeouts may still be too slow together."""
    async with a_relay({"MAIL": Stall()}) as (server, provider):
        outcome = await sent(provider, limit=SOON)
        again = await sent(provider, limit=SOON)

    assert isinstance(outcome, Deferred)
    assert isinstance(again, Deferred)
    assert failure_of(outcome).code == "SMTP_TIMEOUT"
    assert server.connections == 2

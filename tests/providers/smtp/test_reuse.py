"""Connections are reused: while they work, and up to a limit."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from carteiro.model import Deferred, NotMade, Outcome, Taken, Unknown
from carteiro.ports.provider import Handover
from carteiro.providers.smtp.provider import SmtpProvider
from support.sending import SOON, a_mail, id_of, sent
from support.smtp_sending import a_relay
from support.smtp_server import Act, Drop, Say, SayLate, Stall
from support.working import LONG, TOO_LONG


async def test_one_connection_carries_many_mails() -> None:
    """One greeting; no checks in between."""
    async with a_relay() as (server, provider):
        ids = [id_of(await sent(provider)) for _ in range(5)]

    assert ids == ["Q0001", "Q0002", "Q0003", "Q0004", "Q0005"]
    assert server.connections == server.said("EHLO") == 1
    assert server.said("RSET") == server.said("NOOP") == 0


async def test_connection_is_closed_with_quit() -> None:
    """So the relay can free it at once."""
    async with a_relay() as (server, provider):
        await sent(provider)

    assert server.commands[-1] == "QUIT"


async def test_connections_are_bounded() -> None:
    """A mail without a free connection waits for one."""
    gate = asyncio.Event()
    reply = "250 Ok: queued as {}\r\n"
    plays: dict[str, list[Act]] = {"dot": [SayLate(reply.format(n), gate) for n in range(3)]}
    async with a_relay(plays, connections=3) as (server, provider):
        calls = [asyncio.create_task(sent(provider)) for _ in range(10)]
        await server.until(lambda: len(server.mails) == 3)
        at_once = server.connections
        gate.set()
        outcomes = await asyncio.gather(*calls)

    assert at_once == server.connections == 3
    assert all(isinstance(outcome, Taken) for outcome in outcomes)
    assert len(server.mails) == 10


async def test_call_cancelled_while_it_waits_for_a_connection_was_never_made() -> None:
    """It is nobody's failure, and says why; the next one gets its place."""
    gate = asyncio.Event()
    plays: dict[str, list[Act]] = {"dot": [SayLate("250 Ok\r\n", gate)]}
    async with a_relay(plays, connections=1) as (server, provider):
        first = asyncio.create_task(sent(provider))
        await server.until(lambda: len(server.mails) == 1)
        cut = await sent(provider, limit=SOON)
        gate.set()
        assert isinstance(await first, Taken)
        last = await sent(provider)

    assert isinstance(cut, NotMade)
    assert cut.failure.reason == "No connection or thread of smtp was free"
    assert isinstance(last, Taken)
    assert server.connections == 1


async def test_connection_is_replaced_after_a_number_of_mails() -> None:
    """Relays limit what one may carry."""
    async with a_relay(messages_per_connection=2) as (server, provider):
        for _ in range(5):
            await sent(provider)

    assert server.connections == server.said("QUIT") == 3
    assert len(server.mails) == 5


async def test_idle_connection_is_closed() -> None:
    """It costs the relay, too."""
    async with a_relay(idle=timedelta(milliseconds=20)) as (server, provider):
        await sent(provider)
        await asyncio.gather(sent(provider), sent(provider))
        await server.until(lambda: server.said("QUIT") == 2)
        await sent(provider)

    assert server.connections == 3


@pytest.mark.parametrize(
    "stage_and_act",
    [("MAIL", Stall()), ("RCPT", Drop()), ("DATA", Say("nonsense\r\n")), ("dot", Stall())],
    ids=lambda case: case[0],
)
async def test_broken_connection_is_not_reused(stage_and_act: tuple[str, Act]) -> None:
    """Its replies could be mixed up: the next mail gets a new one."""
    stage, act = stage_and_act
    limits: dict[str, Any] = {"command_limit": SOON, "reply_limit": SOON}
    async with a_relay({stage: [act]}, **limits) as (server, provider):
        first = await sent(provider)
        second = await sent(provider)

    assert isinstance(first, Deferred | Unknown)
    assert isinstance(second, Taken)
    assert server.connections == 2


@pytest.mark.parametrize("act", [Drop(), Drop("421 4.4.2 Idle for too long\r\n")])
async def test_kept_connection_that_the_relay_closes_at_the_start_is_replaced(act: Act) -> None:
    """Relays close idle ones; nothing was begun, so it is not a failure, and no mail goes twice."""
    async with a_relay() as (server, provider):
        await sent(provider)
        server.plays["MAIL"] = [act]
        again = await sent(provider)

    assert again == Taken("Q0002")
    assert server.connections == 2
    assert len(server.mails) == 2


async def test_new_connection_that_the_relay_closes_is_a_failure() -> None:
    """Only a kept connection is replaced, and once."""
    async with a_relay() as (server, provider):
        await sent(provider)
        server.plays["MAIL"] = Drop()
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert server.connections == 2


async def until_unusable(provider: SmtpProvider) -> None:
    """Wait until no kept connection could be used."""
    async with asyncio.timeout(TOO_LONG):
        while any(connection.is_usable for _, connection in provider._pool._idle):
            await asyncio.sleep(0)


async def test_kept_connection_that_the_relay_has_closed_is_not_used() -> None:
    """It is noticed before anything is sent."""
    async with a_relay({"dot": [Drop("250 Ok: queued as ONE\r\n")]}) as (server, provider):
        first = await sent(provider)
        await until_unusable(provider)
        second = await sent(provider)

    assert (first, second) == (Taken("ONE"), Taken("Q0002"))
    assert server.said("MAIL") == server.connections == 2


@pytest.mark.parametrize("text", ["421 4.4.2 Bye\r\n", "hello?\r\n", "250 unasked\r\n", "250-un"])
async def test_kept_connection_with_unexpected_data_is_not_used(text: str) -> None:
    """It would be taken for the answer to the next mail."""
    async with a_relay() as (server, provider):
        await sent(provider)
        server.say_unasked(text)
        await until_unusable(provider)
        second = await sent(provider)

    assert second == Taken("Q0002")
    assert server.said("MAIL") == server.connections == 2


async def test_replacement_connection_keeps_the_limit() -> None:
    """Another idle one makes room."""
    async with a_relay(connections=2) as (server, provider):
        await asyncio.gather(sent(provider), sent(provider))
        connection = await provider._pool.take(Handover(LONG), fresh=True)
        await server.until(lambda: server.closed == 1)
        provider._pool.give_back(connection)

    assert server.connections == 3


@pytest.mark.parametrize("text", ["421 4.4.2 Bye\r\n", "hello?\r\n", "250 unasked\r\n"])
async def test_connection_with_an_unexpected_reply_is_not_reused(text: str) -> None:
    """The next reply on it would be the last one's."""
    async with a_relay({"QUIT": Say("")}) as (server, provider):
        server.plays["dot"] = [Say(f"250 Ok: queued as ONE\r\n{text}")]
        first = await sent(provider)
        second = await sent(provider)

    assert (first, second) == (Taken("ONE"), Taken("Q0002"))
    assert server.connections == 2


async def test_refused_mail_leaves_its_connection_for_the_next() -> None:
    """RSET is sent together with the start of the next mail."""
    async with a_relay({"RCPT no@example.com": Say("550 5.1.1 No\r\n")}) as (server, provider):
        await sent(provider, a_mail("no@example.com"))
        outcome = await sent(provider)

    assert outcome == Taken("Q0001")
    assert server.connections == server.said("RSET") == 1
    assert server.mails[0].recipients == ["ana@example.com"]


async def test_relay_that_refuses_rset_is_disconnected() -> None:
    """Otherwise a mail could go to the recipients of another."""
    plays: dict[str, Act] = {
        "RCPT no@example.com": Say("550 5.1.1 No\r\n"),
        "RSET": Drop("421 4.3.0 Confused\r\n"),
    }
    async with a_relay(plays) as (server, provider):
        await sent(provider, a_mail("no@example.com"))
        outcome = await sent(provider)

    assert outcome == Taken("Q0001")
    assert server.connections == 2


async def test_concurrent_mails_arrive_once_each() -> None:
    """Over any connections."""

    async def one(number: int) -> Outcome:
        return await sent(provider, a_mail(f"u{number}@example.com"))

    async with a_relay(connections=7) as (server, provider):
        await asyncio.gather(*[one(number) for number in range(100)])

    recipients = [recipient for mail in server.mails for recipient in mail.recipients]
    assert sorted(recipients) == sorted(f"u{number}@example.com" for number in range(100))
    assert server.connections <= 7

"""Connections are kept for the next mail: as long as they are good, and no more than so many."""

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
    """Greeted once; nothing is asked in between."""
    async with a_relay() as (server, provider):
        ids = [id_of(await sent(provider)) for _ in range(5)]

    assert ids == ["Q0001", "Q0002", "Q0003", "Q0004", "Q0005"]
    assert server.connections == server.said("EHLO") == 1
    assert server.said("RSET") == server.said("NOOP") == 0


async def test_it_takes_leave() -> None:
    """A relay that is told can forget us at once."""
    async with a_relay() as (server, provider):
        await sent(provider)

    assert server.commands[-1] == "QUIT"


async def test_there_are_never_more_connections_than_allowed() -> None:
    """Who finds none free waits for one."""
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


async def test_a_call_that_is_cut_while_it_waits_for_a_connection_was_never_made() -> None:
    """It is nobody's failure, and says why; its place goes to the next."""
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
    assert cut.failure.reason == "All connections to smtp were in use"
    assert isinstance(last, Taken)
    assert server.connections == 1


async def test_a_connection_is_replaced_after_so_many_mails() -> None:
    """Relays limit what one may carry."""
    async with a_relay(messages_per_connection=2) as (server, provider):
        for _ in range(5):
            await sent(provider)

    assert server.connections == server.said("QUIT") == 3
    assert len(server.mails) == 5


async def test_an_idle_connection_is_closed() -> None:
    """It is the relay's, too."""
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
async def test_a_broken_connection_is_not_used_again(stage_and_act: tuple[str, Act]) -> None:
    """Replies could no longer be told apart: the next mail gets a new one."""
    stage, act = stage_and_act
    limits: dict[str, Any] = {"command_limit": SOON, "reply_limit": SOON}
    async with a_relay({stage: [act]}, **limits) as (server, provider):
        first = await sent(provider)
        second = await sent(provider)

    assert isinstance(first, Deferred | Unknown)
    assert isinstance(second, Taken)
    assert server.connections == 2


@pytest.mark.parametrize("act", [Drop(), Drop("421 4.4.2 Idle for too long\r\n")])
async def test_a_kept_connection_that_the_relay_closes_as_we_begin_is_replaced(act: Act) -> None:
    """Relays close what was idle; that is no failure, as nothing was begun, and no mail goes twice."""
    async with a_relay() as (server, provider):
        await sent(provider)
        server.plays["MAIL"] = [act]
        again = await sent(provider)

    assert again == Taken("Q0002")
    assert server.connections == 2
    assert len(server.mails) == 2


async def test_a_new_connection_that_the_relay_closes_is_a_failure() -> None:
    """It is tried over once, on a connection that was kept, and never for ever."""
    async with a_relay() as (server, provider):
        await sent(provider)
        server.plays["MAIL"] = Drop()
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert server.connections == 2


async def until_unusable(provider: SmtpProvider) -> None:
    """Wait until no connection that is kept could be used."""
    async with asyncio.timeout(TOO_LONG):
        while any(connection.is_usable for _, connection in provider._pool._idle):
            await asyncio.sleep(0)


async def test_a_kept_connection_that_the_relay_has_closed_is_not_used() -> None:
    """It is seen before anything is sent."""
    async with a_relay({"dot": [Drop("250 Ok: queued as ONE\r\n")]}) as (server, provider):
        first = await sent(provider)
        await until_unusable(provider)
        second = await sent(provider)

    assert (first, second) == (Taken("ONE"), Taken("Q0002"))
    assert server.said("MAIL") == server.connections == 2


@pytest.mark.parametrize("text", ["421 4.4.2 Bye\r\n", "hello?\r\n", "250 unasked\r\n", "250-un"])
async def test_a_kept_connection_on_which_something_came_is_not_used(text: str) -> None:
    """It would be taken for the answer to the next mail."""
    async with a_relay() as (server, provider):
        await sent(provider)
        server.say_unasked(text)
        await until_unusable(provider)
        second = await sent(provider)

    assert second == Taken("Q0002")
    assert server.said("MAIL") == server.connections == 2


async def test_a_new_connection_for_an_old_one_keeps_the_bound() -> None:
    """Another idle one makes room."""
    async with a_relay(connections=2) as (server, provider):
        await asyncio.gather(sent(provider), sent(provider))
        connection = await provider._pool.take(Handover(LONG), fresh=True)
        await server.until(lambda: server.closed == 1)
        provider._pool.give_back(connection)

    assert server.connections == 3


@pytest.mark.parametrize("text", ["421 4.4.2 Bye\r\n", "hello?\r\n", "250 unasked\r\n"])
async def test_a_connection_on_which_something_came_unasked_is_not_used_again(text: str) -> None:
    """The next reply on it would be the last one's."""
    async with a_relay({"QUIT": Say("")}) as (server, provider):
        server.plays["dot"] = [Say(f"250 Ok: queued as ONE\r\n{text}")]
        first = await sent(provider)
        second = await sent(provider)

    assert (first, second) == (Taken("ONE"), Taken("Q0002"))
    assert server.connections == 2


async def test_a_refused_mail_leaves_its_connection_for_the_next() -> None:
    """The relay is told to forget it, in the same breath as the next mail begins."""
    async with a_relay({"RCPT no@example.com": Say("550 5.1.1 No\r\n")}) as (server, provider):
        await sent(provider, a_mail("no@example.com"))
        outcome = await sent(provider)

    assert outcome == Taken("Q0001")
    assert server.connections == server.said("RSET") == 1
    assert server.mails[0].recipients == ["ana@example.com"]


async def test_a_relay_that_will_not_forget_is_left() -> None:
    """Or a mail could go to the recipients of another."""
    plays: dict[str, Act] = {
        "RCPT no@example.com": Say("550 5.1.1 No\r\n"),
        "RSET": Drop("421 4.3.0 Confused\r\n"),
    }
    async with a_relay(plays) as (server, provider):
        await sent(provider, a_mail("no@example.com"))
        outcome = await sent(provider)

    assert outcome == Taken("Q0001")
    assert server.connections == 2


async def test_many_mails_at_once_arrive_once_each() -> None:
    """Over whatever connections."""

    async def one(number: int) -> Outcome:
        return await sent(provider, a_mail(f"u{number}@example.com"))

    async with a_relay(connections=7) as (server, provider):
        await asyncio.gather(*[one(number) for number in range(100)])

    recipients = [recipient for mail in server.mails for recipient in mail.recipients]
    assert sorted(recipients) == sorted(f"u{number}@example.com" for number in range(100))
    assert server.connections <= 7

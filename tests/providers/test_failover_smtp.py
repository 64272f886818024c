"""A chain with a relay in front, on a real socket: its answers before any recipient are its own trouble."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from carteiro.jobs.kind import Kind, Pool
from carteiro.model import MessageId, State
from carteiro.policy.breaker import TRIPS_AFTER
from carteiro.policy.routing import Routes
from carteiro.providers.failover import Chain
from carteiro.providers.rate_limiter import Limits, Pacer
from support.resend_sending import an_account
from support.resend_twin import ResendTwin
from support.smtp_sending import a_relay
from support.smtp_server import Act, Drop, Say, SmtpServer
from support.working import Office, an_office

RATE = 100.0


class Route:
    """The relay, then Resend, as one process calls them; time stands still for their breakers."""

    def __init__(
        self, office: Office, kind: Kind, chain: Chain, relay: SmtpServer, resend: ResendTwin
    ) -> None:
        self.office = office
        self.relay = relay
        self.resend = resend
        self._kind = kind
        self._chain = chain

    async def send(self, count: int) -> list[MessageId]:
        """Send this many messages, one after the other, each to its end."""
        messages = [await self.office.post("ana@example.com") for _ in range(count)]
        await self.office.work(Pool("email", 1, (self._kind,)))
        return messages

    async def taken_by(self, message: MessageId) -> tuple[State, str | None]:
        """The state of a message, and its last provider."""
        row = await self.office.row(message)
        return row.state, row.provider

    @property
    def is_relay_left_alone(self) -> bool:
        """True if its circuit is open."""
        return self._chain.standings()[0].is_open

    @property
    def rate(self) -> float | None:
        """The relay's calls a second."""
        return self._chain.standings()[0].rate


@asynccontextmanager
async def a_route(stage: str, act: Act | list[Act], *, rate: float = 0.0) -> AsyncIterator[Route]:
    """A relay that does this at the stage, and Resend, which accepts everything; ``rate``: the relay's, 0 is none."""
    async with (
        an_office() as office,
        a_relay({stage: act}) as (server, relay),
        an_account() as (twin, resend),
    ):
        kinds = {
            "smtp": office.email_kind(provider="smtp", deliver=relay.deliver),
            "resend": office.email_kind(provider="resend", deliver=resend.deliver),
        }
        pacer = Pacer("smtp", office.backend.rates, Limits(per_second=rate))
        chain = Chain(
            kinds,
            Routes(tuple(kinds), {}, {}),
            pacers={"smtp": pacer} if rate else {},
            clock=lambda: 1000.0,
            chance=lambda: 0.5,
        )
        try:
            yield Route(office, office.email_kind(chain=chain), chain, server, twin)
        finally:
            await pacer.close()


@pytest.mark.parametrize(
    ("stage", "act"),
    [
        ("greeting", Drop("421 4.3.2 Service not available\r\n")),
        ("EHLO", Say("554 5.7.1 Your IP address is blocked\r\n")),
        ("MAIL", Drop("421 4.3.2 Service not available, closing\r\n")),
        ("MAIL", Say("451 4.3.0 Internal error\r\n")),
        ("MAIL", Say("450 4.1.1 user unknown\r\n")),
        ("MAIL", Say("554 5.7.1 Relay access denied\r\n")),
    ],
    ids=lambda each: each if isinstance(each, str) else each.text[:8],
)
async def test_relay_that_fails_before_any_recipient_is_failed_over_and_opens_its_circuit(
    stage: str, act: Act
) -> None:
    """No message fails or waits, and after a few calls it is not called any more."""
    async with a_route(stage, act) as route:
        messages = await route.send(2 * TRIPS_AFTER)

        taken = {await route.taken_by(each) for each in messages}
        assert taken == {(State.SENT, "resend")}
        assert route.is_relay_left_alone
        assert route.relay.connections <= TRIPS_AFTER
        assert len(route.resend.deliveries) == len(messages)


@pytest.mark.parametrize(
    "reply",
    [
        "553 5.1.8 <shop@example.com>: Sender address rejected: Domain not found",
        "450 4.1.8 <shop@example.com>: Sender address rejected: Domain not found",
        "550 No",
        "552 5.3.4 Message size exceeds fixed limit",
    ],
)
async def test_refusal_of_one_sender_fails_over_and_opens_no_circuit(
    reply: str,
) -> None:
    """Another provider may know the sender; the relay is called again for the next one."""
    async with a_route("MAIL", Say(f"{reply}\r\n")) as route:
        messages = await route.send(2 * TRIPS_AFTER)

        assert {await route.taken_by(each) for each in messages} == {(State.SENT, "resend")}
        assert not route.is_relay_left_alone
        assert route.relay.said("MAIL") == len(messages)


async def test_refused_sender_ends_a_message_without_another_provider() -> None:
    """It is permanent with this provider: no attempt is wasted on it."""
    async with (
        an_office() as office,
        a_relay({"MAIL": Say("550 5.7.1 Sender not allowed\r\n")}) as (server, relay),
    ):
        kind = office.email_kind(provider="smtp", deliver=relay.deliver)
        chain = Chain({"smtp": kind}, Routes(("smtp",), {}, {}))
        message = await office.post("ana@example.com")

        await office.work(Pool("email", 1, (office.email_kind(chain=chain),)))

        row = await office.row(message)
        assert (row.state, row.attempts, server.said("MAIL")) == (State.FAILED, 1, 1)
        assert row.failure is not None
        assert row.failure.scope == "provider"


async def test_throttling_at_mail_slows_the_relay_for_all_processes() -> None:
    """As at the greeting: the shared rate falls, and the circuit stays closed."""
    once: list[Act] = [Say("451 4.7.1 Too many messages, slow down\r\n")]
    async with a_route("MAIL", once, rate=RATE) as route:
        [message] = await route.send(1)

        assert (await route.taken_by(message))[0] is State.SENT
        assert route.rate is not None
        assert route.rate < RATE
        assert not route.is_relay_left_alone


async def test_reply_to_rcpt_is_not_a_fault_of_the_relay() -> None:
    """It passes on the answer of a destination: that goes to no other provider, and slows nothing."""
    async with a_route("RCPT", Say("550 5.1.1 No such user\r\n")) as route:
        [message] = await route.send(1)

        row = await route.office.row(message)
        assert (row.state, row.provider) == (State.FAILED, "smtp")
        assert route.resend.deliveries == []
        assert not route.is_relay_left_alone

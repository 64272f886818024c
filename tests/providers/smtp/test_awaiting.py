"""While a relay processes the whole mail, the message stays with the worker that sent it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from carteiro.engine.worker import Worker
from carteiro.jobs.kind import Pool
from carteiro.model import EventType, Lease, MessageId, State
from support.sending import SENDER
from support.smtp_sending import a_relay
from support.smtp_server import Say, SayLate, SmtpServer
from support.working import LONG, TOO_LONG, Office, Through, an_office, short

LEASE = timedelta(seconds=30)


class Watching(Through):
    """A store that reports calls to extend."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.extended: list[MessageId] = []
        self.asked = asyncio.Event()

    async def extend(self, leases: Sequence[Lease], *, lease: timedelta) -> list[bool]:
        """Remember, and pass it on."""
        self.extended += [each.job for each in leases]
        answers = await super().extend(leases, lease=lease)
        self.asked.set()
        return answers

    async def extends(self) -> None:
        """Wait until a call has begun and ended: one that is in flight may have read the clock before."""
        for _ in range(2):
            self.asked.clear()
            async with asyncio.timeout(TOO_LONG):
                await self.asked.wait()


class Asleep:
    """A `Wake` that never rings."""

    def rings(self) -> int:
        return 0

    async def wait(self, timeout: timedelta, *, since: int, kinds: object = ()) -> bool:  # noqa: ARG002
        """Sleep a little: the awaited event happens elsewhere."""
        assert since == 0
        await asyncio.sleep(min(timeout.total_seconds(), 0.01))
        return False


@asynccontextmanager
async def working(
    office: Office, relay: tuple[SmtpServer, Any], store: Watching
) -> AsyncIterator[Worker]:
    """A worker that sends through the relay while the block runs, and renews every few milliseconds."""
    _, provider = relay
    kind = office.email_kind(
        provider="smtp", deliver=provider.deliver, call_limit=LONG, close=provider.close
    )
    lengths = short(lease=LEASE, hold_margin=timedelta(milliseconds=10))
    worker = office.worker(Pool("email", 5, (kind,)), store=store, wake=Asleep(), lengths=lengths)
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await asyncio.wait_for(running, TOO_LONG)


async def test_hold_is_renewed_while_only_the_reply_is_missing() -> None:
    """For any duration no other worker finds the message free; then it is sent, once."""
    late = asyncio.Event()
    plays = {"dot": SayLate("250 Ok: queued as LATE\r\n", late)}
    async with an_office() as office, a_relay(plays) as relay:
        server, _ = relay
        store = Watching(office.backend.store)
        message = await office.post("ana@example.com")
        async with working(office, relay, store):
            await server.until(lambda: len(server.mails) == 1)
            for _ in range(5):
                office.clock.advance(LEASE * 2 / 3)
                await store.extends()
                held_until = (await office.row(message)).held_until
                assert held_until is not None
                assert held_until > office.clock.at()
                assert await office.backend.store.reap(limit=10) == 0
            late.set()
        row = await office.row(message)

    assert (row.state, row.provider_id, row.attempts) == (State.SENT, "LATE", 1)
    assert len(server.mails) == 1


async def test_hold_of_a_call_in_flight_is_not_renewed() -> None:
    """Its hold has its own end: a worker that hangs before the hand-over must lose it."""
    late = asyncio.Event()
    plays = {"MAIL": SayLate("250 Ok\r\n", late)}
    async with an_office() as office, a_relay(plays) as relay:
        server, _ = relay
        store = Watching(office.backend.store)
        await office.post("ana@example.com")
        async with working(office, relay, store):
            await server.until(lambda: server.said("MAIL") == 1)
            before = len(store.extended)  # perhaps while it was only claimed
            await asyncio.sleep(0.05)  # many times the interval at which leases are renewed
            extended = store.extended[before:]
            late.set()

    assert extended == []
    assert len(server.mails) == 1


async def test_refused_copies_are_in_the_timeline() -> None:
    """With the address as the tenant wrote it, for the tenant to read."""
    plays = {"RCPT bia@example.com": Say("550 5.1.1 No such user\r\n")}
    async with an_office() as office, a_relay(plays) as relay:
        store = Watching(office.backend.store)
        message = await office.post("ana@example.com", cc=["bia@example.com"], **{"from": SENDER})
        async with working(office, relay, store):
            await relay[0].until(lambda: len(relay[0].mails) == 1)
        story = await office.story(message)
        event = await office.event(message, EventType.RECIPIENT_REFUSED)

    assert story[-2:] == ["RECIPIENT_REFUSED", "SENT"]
    assert event.metadata == {
        "recipient": "bia@example.com",
        "errorCode": "550",
        "errorCategory": "PERMANENT_ERROR",
        "errorMessage": "550 5.1.1 No such user",
        "originalCode": "5.1.1",
    }

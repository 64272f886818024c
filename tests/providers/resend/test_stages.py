"""The stage of a failure decides: before the body nothing was handed over, after it the result is unknown."""

import asyncio
import socket
from contextlib import closing
from datetime import timedelta

import pytest

from carteiro.errors import DeadlinePassed
from carteiro.model import Deferred, NotMade, Taken, Unknown
from carteiro.ports import Handover
from carteiro.providers.resend import clients
from support.resend_sending import a_provider, again, an_account, key_of
from support.resend_twin import HOST, Act, Drop, DropUnread, ResendTwin, Say, SayRaw, Stall
from support.sending import SOON, a_mail, sent
from support.working import LONG


async def test_unreachable_server_got_nothing() -> None:
    """An ordinary failure: it is retried, and may go through another provider."""
    with closing(socket.create_server((HOST, 0))) as taken:
        port = taken.getsockname()[1]
    async with a_provider(ResendTwin(port=port)) as provider:
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert outcome.failure.code == "NETWORK_ERROR"


async def test_server_without_tls_got_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection was there, and nothing went over it."""
    monkeypatch.setattr(clients, "_CONNECT_SECONDS", 0.2)
    async with an_account() as (twin, _):
        url = twin.url.replace("http://", "https://")
        async with a_provider(twin, url=url) as provider:
            outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert twin.deliveries == []


@pytest.mark.parametrize(
    "act",
    [
        DropUnread(),
        Drop(),
        Drop(accepts=True),
        Say("application_error"),
        Say("application_error", accepts=True),
        Say("internal_server_error", accepts=True),
        SayRaw(503, b"<html>upstream</html>", accepts=True),
        SayRaw(502, b""),
        SayRaw(408, b"", accepts=True),
        SayRaw(200, b"{}", accepts=True),
        SayRaw(200, b"[]", accepts=True),
        SayRaw(200, b"not JSON", accepts=True),
    ],
)
async def test_missing_answer_after_the_body_is_a_doubt_that_a_replay_resolves(act: Act) -> None:
    """Accepted or not: after the replay it was accepted, once."""
    parcel = a_mail()
    async with an_account(act) as (twin, provider):
        first = await sent(provider, parcel)
        second = await sent(provider, again(parcel))

    assert isinstance(first, Unknown), first
    assert isinstance(second, Taken), second
    assert twin.per_key == {key_of(parcel.message): 1}
    assert twin.deliveries[0].id == second.provider_id


@pytest.mark.parametrize("accepts", [True, False])
async def test_silence_is_a_doubt(accepts: bool) -> None:
    """A call has a timeout; the replay shows its result."""
    parcel = a_mail()
    async with an_account(Stall(accepts)) as (twin, provider):
        first = await sent(provider, parcel, limit=SOON)
        second = await sent(provider, again(parcel))

    assert isinstance(first, Unknown)
    assert first.failure.code == "RESEND_TIMEOUT"
    assert isinstance(second, Taken | Deferred)  # the other side may not have noticed yet
    assert twin.per_key[key_of(parcel.message)] <= 1


async def test_call_in_progress_is_retried_after_a_moment() -> None:
    """Resend says so, and that a retry is safe."""
    parcel = a_mail()
    async with an_account(Stall(accepts=True)) as (twin, provider):
        slow = asyncio.ensure_future(sent(provider, parcel))
        await twin.heard(1)
        outcome = await sent(provider, again(parcel))
        slow.cancel()
        await asyncio.wait([slow])

    assert isinstance(outcome, Deferred)
    assert outcome.failure.code == "RESEND_CONCURRENT_IDEMPOTENT_REQUESTS"
    assert outcome.retry_after >= timedelta(seconds=1)


async def test_body_is_not_sent_after_the_deadline() -> None:
    """The deadline is checked when the connection is open: that may have taken long."""
    async with an_account() as (twin, provider):
        handover = Handover(timedelta(0))
        with pytest.raises(DeadlinePassed):
            await provider.deliver(a_mail(), handover)
        outcome = await sent(provider)

    assert not handover.begun
    assert isinstance(outcome, Taken)
    assert len(twin.deliveries) == 1


async def test_wait_for_a_connection_in_vain_is_not_a_call() -> None:
    """It is not a failure of the e-mail."""
    async with an_account(Stall(), options={"connections": 1}) as (twin, provider):
        slow = asyncio.ensure_future(sent(provider))
        await twin.heard(1)
        outcome = await sent(provider, limit=SOON)
        slow.cancel()
        await asyncio.wait([slow])

    assert isinstance(outcome, NotMade)
    assert len(twin.requests) == 1


async def test_connections_are_kept_for_the_next_mail() -> None:
    """A connection that the server closed meanwhile costs no mail."""
    async with an_account(None, Drop()) as (twin, provider):
        parcel = a_mail()
        outcomes = [
            await sent(provider),
            await sent(provider, parcel),
            await sent(provider, parcel),
        ]

    assert [type(outcome) for outcome in outcomes] == [Taken, Unknown, Taken]
    assert len(twin.deliveries) == 2


async def test_hand_over_begins_with_the_body() -> None:
    async with an_account() as (_, provider):
        handover = Handover(LONG)
        await provider.deliver(a_mail(), handover)

    assert handover.begun
    assert not handover.is_queued

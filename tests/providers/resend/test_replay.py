"""Doubts resolved by replay: the pipeline repeats the call under the same key, and there is one delivery."""

from dataclasses import replace
from typing import Any

import pytest

from carteiro.email.message import make_email, restore_email
from carteiro.email.submission import Submission, new_message
from carteiro.jobs.kind import Kind, Pool
from carteiro.model import Begun, DeadReason, Delivery, LeasedJob, MessageId, Start, State, Tenant
from carteiro.providers.resend.provider import ResendProvider
from support.builders import ACME, an_id
from support.clock import past
from support.resend_sending import an_account, key_of
from support.resend_twin import Act, Drop, ResendTwin, Say, Stall
from support.sending import SOON, a_mail, sent
from support.steps import claimed_alone
from support.working import GATEWAY, LONG, Office, an_office

TO = "ana@example.com"


def a_kind(office: Office, provider: ResendProvider, **changes: Any) -> Kind:
    """E-mail through Resend, as the settings make it."""
    usual = office.email_kind(
        provider=provider.name,
        deliver=provider.deliver,
        replays_for=provider.features.replays_for,
    )
    return replace(usual, **changes)


async def worked(office: Office, provider: ResendProvider, **changes: Any) -> None:
    """Work until every message is finished."""
    await office.work(Pool("email", 5, (a_kind(office, provider, **changes),)))


async def died_in_a_call(office: Office, *, provider: str = "resend") -> LeasedJob:
    """A worker declared the only message, and disappeared."""
    job = await claimed_alone(office.backend.store)
    start = Start(job.lease, provider, LONG, open_attempt=job.open_attempt)
    [answer] = await office.backend.store.declare([start])
    assert isinstance(answer, Begun)
    office.clock.advance(past(LONG * 2))
    return job


async def an_old_message(office: Office, **fields: Any) -> MessageId:
    """A message whose id is old."""
    email = make_email({"to": TO, "subject": "s", "text": "t"} | fields)
    message = new_message(Submission(email, Tenant(ACME), "request-1"))
    return await office.put(replace(message, id=an_id()))


async def id_of(office: Office, message: MessageId) -> str | None:
    """The provider's id of a sent message."""
    row = await office.row(message)
    assert (row.state, row.provider) == (State.SENT, "resend")
    return row.provider_id


def assert_once(twin: ResendTwin, message: MessageId, identity: str | None) -> None:
    """It was delivered once, and has that delivery's id."""
    [mail] = twin.deliveries
    assert (mail.key, mail.id) == (key_of(message), identity)


@pytest.mark.parametrize("delivery", Delivery)
@pytest.mark.parametrize(
    "acts",
    [
        (Drop(accepts=True),),
        (Drop(),),
        (Say("application_error", accepts=True),),
        (Drop(), Drop(), Say("internal_server_error", accepts=True)),
    ],
)
async def test_doubt_ends_in_one_delivery(delivery: Delivery, acts: tuple[Act, ...]) -> None:
    """Dropped after acceptance or before it: sent again, counted once; each doubt is in the timeline."""
    async with an_office() as office, an_account(*acts) as (twin, provider):
        message = await office.post(TO, delivery=delivery)

        await worked(office, provider)

        assert_once(twin, message, await id_of(office, message))
        assert (await office.story(message)).count("IN_DOUBT") == len(acts)
        row = await office.row(message)
        assert (row.in_doubt, row.charged) == (len(acts), 0)


async def test_silence_ends_in_one_delivery() -> None:
    """The timeout passed after acceptance; while the first call is in progress Resend asks to wait."""
    async with an_office() as office, an_account(Stall(accepts=True)) as (twin, provider):
        message = await office.post(TO, delivery="at_most_once")

        await worked(office, provider, call_limit=SOON)

        assert_once(twin, message, await id_of(office, message))


@pytest.mark.parametrize("delivery", Delivery)
@pytest.mark.parametrize("was_delivered", [True, False])
async def test_open_attempt_is_replayed(delivery: Delivery, was_delivered: bool) -> None:
    """A worker died in its call, before Resend had the mail or after."""
    async with an_office() as office, an_account() as (twin, provider):
        message = await office.post(TO, delivery=delivery)
        job = await died_in_a_call(office)
        if was_delivered:
            email = restore_email(job.content or "")
            await sent(provider, replace(a_mail(), message=message, content=email))

        await worked(office, provider)

        assert_once(twin, message, await id_of(office, message))
        assert (await office.story(message)).count("IN_DOUBT") == 1


async def test_message_without_any_answer_is_left_to_people() -> None:
    """As many replays as a failure has retries, and then it is a dead letter in doubt."""
    async with an_office() as office, an_account(*[Drop()] * 20) as (twin, provider):
        message = await office.post(TO)

        await worked(office, provider)

        assert await office.dead_for(message) is DeadReason.IN_DOUBT
        assert (await office.story(message)).count("IN_DOUBT") == GATEWAY.max_attempts
        assert len(twin.requests) == GATEWAY.max_attempts


async def test_message_older_than_its_key_is_not_replayed() -> None:
    """Resend has forgotten the key: sent now, it could be a second delivery."""
    async with an_office() as office, an_account(Drop(accepts=True)) as (twin, provider):
        message = await an_old_message(office, delivery="at_most_once")

        await worked(office, provider)

        assert await office.dead_for(message) is DeadReason.IN_DOUBT
        assert len(twin.deliveries) == 1


async def test_old_message_in_doubt_is_resent_as_with_any_provider() -> None:
    """At least once: the policy's resends, under the same key all the same."""
    acts = (Drop(accepts=True),)
    async with an_office() as office, an_account(*acts) as (twin, provider):
        message = await an_old_message(office)

        await worked(office, provider)

        assert_once(twin, message, await id_of(office, message))


async def test_doubt_of_another_provider_is_not_replayed_here() -> None:
    """Its key is unknown to Resend; sending it here could be a second delivery."""
    async with an_office() as office, an_account() as (twin, provider):
        message = await office.post(TO, delivery="at_most_once")
        await died_in_a_call(office, provider="smtp")

        await worked(office, provider)

        assert await office.dead_for(message) is DeadReason.IN_DOUBT
        assert twin.requests == []

"""Provider: begins the hand-over before it, and returns its outcome."""

from datetime import timedelta

import pytest

from carteiro.email.message import make_email
from carteiro.errors import DeadlinePassed
from carteiro.model import Outcome, Taken
from carteiro.ports import Handover, Parcel, Provider
from support.delivered import Delivered
from support.working import a_parcel

LONG = timedelta(seconds=30)
OVER = timedelta(0)


def an_email_parcel(*, attempt: int = 1) -> Parcel:
    """A parcel with an e-mail that any provider would accept."""
    email = make_email({"to": "ana@example.com", "subject": "s", "text": "t"})
    return a_parcel(email, attempt=attempt)


async def taken(provider: Provider, parcel: Parcel, handover: Handover) -> Taken:
    """Deliver an acceptable mail."""
    outcome: Outcome = await provider.deliver(parcel, handover)
    assert isinstance(outcome, Taken), outcome
    return outcome


async def test_hand_over_has_begun_when_it_was_accepted(provider: Provider) -> None:
    """From then on a call without an answer would be in doubt."""
    handover = Handover(LONG)

    await taken(provider, an_email_parcel(), handover)

    assert handover.begun


async def test_accepted_mail_has_a_provider_id(provider: Provider) -> None:
    """It is never blank, and another message has another."""
    first = await taken(provider, an_email_parcel(), Handover(LONG))
    second = await taken(provider, an_email_parcel(), Handover(LONG))

    assert first.provider_id
    assert first.provider_id != second.provider_id


async def test_nothing_is_delivered_after_the_deadline(
    provider: Provider, world: Delivered
) -> None:
    """A process that slept past its deadline must not hand over any more: that is the last check."""
    handover = Handover(OVER)

    with pytest.raises(DeadlinePassed):
        await provider.deliver(an_email_parcel(), handover)

    assert not handover.begun
    assert world.mails == []


async def test_provider_has_a_name(provider: Provider) -> None:
    """It distinguishes codes, events and log lines."""
    assert provider.name == provider.name.lower() != ""

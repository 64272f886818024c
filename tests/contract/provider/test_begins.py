"""Provider: begins the hand-over before it, and says what came of it."""

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
    """A parcel with an e-mail that any provider would take."""
    email = make_email({"to": "ana@example.com", "subject": "s", "text": "t"})
    return a_parcel(email, attempt=attempt)


async def taken(provider: Provider, parcel: Parcel, handover: Handover) -> Taken:
    """Deliver what the provider takes."""
    outcome: Outcome = await provider.deliver(parcel, handover)
    assert isinstance(outcome, Taken), outcome
    return outcome


async def test_the_hand_over_has_begun_when_it_was_taken(provider: Provider) -> None:
    """From then on a call without an answer would be in doubt."""
    handover = Handover(LONG)

    await taken(provider, an_email_parcel(), handover)

    assert handover.begun


async def test_who_took_it_over_gives_it_a_name(provider: Provider) -> None:
    """The provider's id is never blank, and another message's is another."""
    first = await taken(provider, an_email_parcel(), Handover(LONG))
    second = await taken(provider, an_email_parcel(), Handover(LONG))

    assert first.provider_id
    assert first.provider_id != second.provider_id


async def test_too_late_nothing_is_delivered(provider: Provider, world: Delivered) -> None:
    """A process that slept past its deadline must not hand over any more: that is the last check."""
    handover = Handover(OVER)

    with pytest.raises(DeadlinePassed):
        await provider.deliver(an_email_parcel(), handover)

    assert not handover.begun
    assert world.mails == []


async def test_a_provider_has_a_name(provider: Provider) -> None:
    """Codes, events and log lines are told apart by it."""
    assert provider.name == provider.name.lower() != ""

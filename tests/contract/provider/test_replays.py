"""Provider: where it knows calls again, a repeated one hands nothing over and has the first answer."""

from dataclasses import replace

from carteiro.email.message import make_email
from carteiro.model import Outcome, Rejected, Taken
from carteiro.ports import Handover, Parcel, Provider
from support.delivered import Delivered
from support.working import LONG, a_parcel


def a_mail(subject: str = "s") -> Parcel:
    """A parcel with an e-mail that any provider would take."""
    return a_parcel(make_email({"to": "ana@example.com", "subject": subject, "text": "t"}))


async def delivered(provider: Provider, parcel: Parcel) -> Outcome:
    """What came of a call."""
    return await provider.deliver(parcel, Handover(LONG))


async def test_a_repeated_call_is_no_second_delivery(replaying: Provider, world: Delivered) -> None:
    """Nor does the number of the attempt make it another."""
    parcel = a_mail()

    first = await delivered(replaying, parcel)
    second = await delivered(replaying, replace(parcel, attempt=2))

    assert isinstance(first, Taken)
    assert second == first
    assert len(world.mails) == 1


async def test_a_changed_message_is_another(replaying: Provider, world: Delivered) -> None:
    """A redrive with other words is to be delivered."""
    parcel = a_mail()

    first = await delivered(replaying, parcel)
    second = await delivered(replaying, replace(parcel, revision=2))

    assert isinstance(first, Taken)
    assert isinstance(second, Taken)
    assert first.provider_id != second.provider_id
    assert len(world.mails) == 2


async def test_other_words_under_the_same_name_are_refused(
    replaying: Provider, world: Delivered
) -> None:
    """They are neither sent nor taken for sent: the first answer was to other words."""
    parcel = a_mail()
    other = a_mail("another").content

    await delivered(replaying, parcel)
    second = await delivered(replaying, replace(parcel, content=other))

    assert isinstance(second, Rejected)
    assert len(world.mails) == 1

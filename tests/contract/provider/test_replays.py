"""Provider: where it knows calls again, a repeated one hands nothing over and has the first answer."""

from dataclasses import replace

from carteiro.email.message import make_email
from carteiro.model import Outcome, Rejected, Taken
from carteiro.ports import Handover, Parcel, Provider
from support.delivered import Delivered
from support.working import LONG, a_parcel


def a_mail(subject: str = "s") -> Parcel:
    """A parcel with an e-mail that any provider would accept."""
    return a_parcel(make_email({"to": "ana@example.com", "subject": subject, "text": "t"}))


async def delivered(provider: Provider, parcel: Parcel) -> Outcome:
    """The outcome of a call."""
    return await provider.deliver(parcel, Handover(LONG))


async def test_repeated_call_is_not_a_second_delivery(
    replaying: Provider, world: Delivered
) -> None:
    """Nor does the number of the attempt make it another."""
    parcel = a_mail()

    first = await delivered(replaying, parcel)
    second = await delivered(replaying, replace(parcel, attempt=2))

    assert isinstance(first, Taken)
    assert second == first
    assert len(world.mails) == 1


async def test_changed_message_is_another(replaying: Provider, world: Delivered) -> None:
    """A redrive with other content is to be delivered."""
    parcel = a_mail()

    first = await delivered(replaying, parcel)
    second = await delivered(replaying, replace(parcel, revision=2))

    assert isinstance(first, Taken)
    assert isinstance(second, Taken)
    assert first.provider_id != second.provider_id
    assert len(world.mails) == 2


async def test_other_content_under_the_same_name_is_refused(
    replaying: Provider, world: Delivered
) -> None:
    """It is neither sent nor counted as sent: the first answer was to other content."""
    parcel = a_mail()
    other = a_mail("another").content

    await delivered(replaying, parcel)
    second = await delivered(replaying, replace(parcel, content=other))

    assert isinstance(second, Rejected)
    assert len(world.mails) == 1

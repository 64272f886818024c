"""The provider that discards everything."""

from datetime import timedelta

from carteiro.model import Taken
from carteiro.ports import Handover
from carteiro.providers.noop.provider import NoopProvider
from support.working import a_parcel


async def test_every_mail_is_accepted() -> None:
    """Its content is not read."""
    parcel = a_parcel(content=None)

    outcome = await NoopProvider().deliver(parcel, Handover(timedelta(seconds=1)))

    assert outcome == Taken(f"noop-{parcel.message}")

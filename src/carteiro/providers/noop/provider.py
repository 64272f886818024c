"""Takes everything over and forgets it: for measuring the path itself."""

from carteiro.model import Outcome, Taken
from carteiro.ports.provider import Handover, Parcel
from carteiro.providers.noop.spec import SPEC


class NoopProvider:
    """Never fails, keeps nothing."""

    name = SPEC.name
    features = SPEC.features

    async def deliver(self, parcel: Parcel, handover: Handover) -> Outcome:
        """Say that it was taken over."""
        handover.begin()
        return Taken(f"noop-{parcel.message}")

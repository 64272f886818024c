"""Takes everything over and forgets it: for measuring the path itself."""

from carteiro.model import Outcome, Taken
from carteiro.ports.provider import Features, Handover, Parcel


class NoopProvider:
    """Never fails, keeps nothing."""

    name = "noop"
    features = Features(is_remote=False)

    async def deliver(self, parcel: Parcel, handover: Handover) -> Outcome:
        """Say that it was accepted."""
        handover.begin()
        return Taken(f"noop-{parcel.message}")

"""How an idle worker learns that there may be work."""

from datetime import timedelta
from typing import Protocol


class Wake(Protocol):
    """Promise in ``tests/contract/wake``: whatever makes a job ready, in this process or another, ends the wait."""

    async def wait(self, timeout: timedelta) -> bool:
        """Return True when there may be work (also without cause), False after ``timeout``."""
        ...

"""How an idle worker learns that there may be work."""

from datetime import timedelta
from typing import Protocol


class Wake(Protocol):
    """Promise in ``tests/contract/wake``: whatever makes a job ready, in this process or another, ends every wait."""

    def rings(self) -> int:
        """How often it has rung: to be asked before looking for work, and given to `wait` when there was none."""
        ...

    async def wait(self, timeout: timedelta, *, since: int) -> bool:
        """Return True once it has rung more often than ``since`` (also without cause), False after ``timeout``."""
        ...

"""Notification of idle workers."""

from datetime import timedelta
from typing import Protocol


class Wake(Protocol):
    """Promise in ``tests/contract/wake``: a job that becomes ready, in this process or another, ends every wait."""

    def rings(self) -> int:
        """Counter of notifications: read it before looking for work, and pass it to `wait` if there was none."""

    async def wait(self, timeout: timedelta, *, since: int) -> bool:
        """Return True once the counter is above ``since`` (also without cause), False after ``timeout``."""

"""Notification of idle workers."""

from collections.abc import Collection
from datetime import timedelta
from typing import Protocol


class Wake(Protocol):
    """Promise in ``tests/contract/wake``: a job that becomes ready, here or elsewhere, ends every wait for its kind."""

    def rings(self) -> int:
        """Counter of notifications: read it before looking for work, and pass it to `wait` if there was none."""

    async def wait(self, timeout: timedelta, *, since: int, kinds: Collection[str] = ()) -> bool:
        """Return True after a notification for one of the kinds that came after ``since``, False after ``timeout``.

        Without kinds, any notification counts. It may come without cause.
        """

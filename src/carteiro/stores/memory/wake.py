"""How an idle worker in this process learns that there may be work."""

import asyncio
from datetime import timedelta

from carteiro.stores.memory.tables import Tables


class MemoryWake:
    """The `Wake` port on one event: set by whatever may make a job ready, cleared by who was woken."""

    def __init__(self, tables: Tables) -> None:
        self._changed = tables.changed

    async def wait(self, timeout: timedelta) -> bool:
        """Return True when there may be work (also without cause), False after ``timeout``."""
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True

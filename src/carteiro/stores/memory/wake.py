"""How an idle worker in this process learns that there may be work."""

from datetime import timedelta

from carteiro.stores.memory.tables import Tables


class MemoryWake:
    """The `Wake` port on the tables' bell: rung by whatever may make a job ready."""

    def __init__(self, tables: Tables) -> None:
        self._bell = tables.bell

    def rings(self) -> int:
        """How often it has rung."""
        return self._bell.rings

    async def wait(self, timeout: timedelta, *, since: int) -> bool:
        """Return True once it has rung more often than ``since``, False after ``timeout``."""
        return await self._bell.wait(timeout, since=since)

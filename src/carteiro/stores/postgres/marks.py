"""Marks of the installation on Postgres."""

from carteiro.stores.postgres.database import Database


class PostgresMarks:
    """See `carteiro.ports.marks.Marks` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def find(self, name: str) -> str | None:
        """The text of a mark; None if there is none."""
        text = await self._db.value("override_get", name)
        return None if text is None else str(text)

    async def put(self, name: str, text: str) -> None:
        """Set a mark, durably."""
        await self._db.fetch("override_set", name, text)

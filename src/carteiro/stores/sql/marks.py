"""Marks of the installation."""

from carteiro.stores.sql.session import Database


class SqlMarks:
    """See `carteiro.ports.marks.Marks` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def find(self, name: str) -> str | None:
        """The text of a mark; None if there is none."""
        text: str | None = await self._db.value("override_get", name=name)
        return text

    async def put(self, name: str, text: str) -> None:
        """Set a mark, durably."""
        await self._db.run("override_set", name=name, setting=text)

"""Marks of the installation on SQLite."""

from carteiro.stores.sqlite.reading import Reader
from carteiro.stores.sqlite.rows import run
from carteiro.stores.sqlite.writer import Writer


class SqliteMarks:
    """See `carteiro.ports.marks.Marks` for what it promises."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def find(self, name: str) -> str | None:
        """The text of a mark; None if there is none."""
        row = await self._reader.ask(lambda db: run(db, "override_get", name=name).fetchone())
        return None if row is None else str(row[0])

    async def put(self, name: str, text: str) -> None:
        """Set a mark, durably."""
        await self._writer.do(lambda db: run(db, "override_set", name=name, setting=text))

"""Marks of the installation, in memory."""

from carteiro.stores.memory.tables import Tables


class MemoryMarks:
    """The `Marks` port on a plain dict."""

    def __init__(self, tables: Tables) -> None:
        self._marks = tables.marks

    async def find(self, name: str) -> str | None:
        """The text of a mark; None if there is none."""
        return self._marks.get(name)

    async def put(self, name: str, text: str) -> None:
        """Set a mark, durably."""
        self._marks[name] = text

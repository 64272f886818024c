"""Facts about the installation, for all its processes."""

from typing import Protocol


class Marks(Protocol):
    """Named texts, shared and permanent; promise in ``tests/contract/marks``: the last text put is found."""

    async def find(self, name: str) -> str | None:
        """The text of a mark; None if there is none."""

    async def put(self, name: str, text: str) -> None:
        """Set a mark, durably."""

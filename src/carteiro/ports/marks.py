"""Facts about the installation that every process of it must know."""

from typing import Protocol


class Marks(Protocol):
    """Named texts, for all processes and for good; promise in ``tests/contract/marks``: the last one put is found."""

    async def find(self, name: str) -> str | None:
        """The text of a mark; None if there is none."""
        ...

    async def put(self, name: str, text: str) -> None:
        """Set a mark, durably."""
        ...

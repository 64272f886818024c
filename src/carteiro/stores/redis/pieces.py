"""Long lists in pieces: while one script runs, no other client is served."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def pieces(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """The items in their order, a number at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]

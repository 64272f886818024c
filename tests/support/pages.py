"""The pages that people read, and the blocks of code in them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[2]

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block; ``line`` is where its code starts, ``follows`` whether it stands right behind the one before."""

    language: str
    code: str
    line: int
    follows: bool


def pages() -> list[str]:
    """Every page, as a path from the top of the repository."""
    top = REPOSITORY.glob("*.md")
    docs = (REPOSITORY / "docs").rglob("*.md")
    return sorted(str(page.relative_to(REPOSITORY)) for page in (*top, *docs))


def text_of(page: str) -> str:
    """What stands on a page."""
    return (REPOSITORY / page).read_text("utf-8")


def blocks_of(page: str) -> Iterator[Block]:
    """The blocks of a page, in their order."""
    text = text_of(page)
    end = -1
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start(2)) + 1
        follows = end >= 0 and not text[end : found.start()].strip()
        yield Block(found[1], found[2], line, follows)
        end = found.end()

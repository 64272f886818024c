"""The pages of the docs, and the blocks of code in them."""

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[2]

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block; ``line`` is where its code starts, ``follows`` if it is right behind the one before."""

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
    """The text of a page."""
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


def runnable(page: str, *languages: str) -> Iterator[tuple[Block, str | None]]:
    """The blocks of a page in these languages, each with its output: the text block right behind it."""
    blocks = list(blocks_of(page))
    for block, after in zip_longest(blocks, blocks[1:]):
        if block.language in languages:
            is_told = after is not None and after.language == "text" and after.follows
            yield block, after.code if is_told else None

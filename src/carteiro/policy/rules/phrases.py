"""Phrases found in a text by its words: as fast with a thousand phrases as with ten."""

import itertools
import re
from collections.abc import Iterable
from typing import Generic, TypeVar

What = TypeVar("What")

_CHOICE = re.compile(r"(\{[^}]*\})")
_WORD = re.compile(r"[^\W_]+")


class Said:
    """A text as phrases are looked for in it: its words in small letters, whatever stood between them."""

    __slots__ = ("line", "words")

    def __init__(self, text: str) -> None:
        found = _WORD.findall(text.lower())
        self.words = frozenset(found)
        self.line = f" {' '.join(found)} "


def phrases(text: str) -> tuple[str, ...]:
    """The phrases of a text: parted by ``|``, and ``{a,b} {c,d}`` stands for ``a c``, ``a d``, ``b c`` and ``b d``."""
    parts = [" ".join(part.split()) for part in text.split("|")]
    return tuple(phrase for part in parts for phrase in _spread(part))


def _spread(phrase: str) -> list[str]:
    choices = [
        part[1:-1].split(",") if part.startswith("{") else [part] for part in _CHOICE.split(phrase)
    ]
    return ["".join(each) for each in itertools.product(*choices)]


class Phrases(Generic[What]):
    """What each phrase stands for; in a text that holds several, the one listed first counts.

    A phrase is words in a row; ``&`` joins phrases that must all be there, in any order.
    """

    def __init__(self, entries: Iterable[tuple[str, What]]) -> None:
        self._by_word: dict[str, list[tuple[int, tuple[str, ...], What]]] = {}
        for order, (phrase, what) in enumerate(entries):
            parts = [_WORD.findall(part.lower()) for part in phrase.split("&")]
            rarest = max((word for part in parts for word in part), key=len)
            needed = tuple(f" {' '.join(part)} " for part in parts)
            self._by_word.setdefault(rarest, []).append((order, needed, what))

    def first(self, said: Said) -> What | None:
        """What the first listed of the phrases in the text stands for."""
        found: tuple[int, What] | None = None
        for word in self._by_word.keys() & said.words:
            for order, needed, what in self._by_word[word]:
                if found is not None and order > found[0]:
                    break
                if all(part in said.line for part in needed):
                    found = (order, what)
                    break
        return None if found is None else found[1]

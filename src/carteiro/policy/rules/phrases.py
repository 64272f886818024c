"""Find phrases in a text, by words: as fast with a thousand phrases as with ten."""

import itertools
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Generic, TypeAlias, TypeVar

What = TypeVar("What")
_Entry: TypeAlias = tuple[int, str, tuple[str, ...], What]

_LAST = sys.maxsize
_SHORT = 4  # letters: such words are in most texts
_CHOICE = re.compile(r"(\{[^}]*\})")
# Chinese and Japanese put no space between words, Korean joins particles to them: there, each character is one.
_UNSPACED = "\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")

# Replaces every network address in a text.
NETWORK_ADDRESS = "network address"
_ADDRESS = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}")
_ADDRESSED, _FEWEST_DOTS = f" {NETWORK_ADDRESS} ", 3


# The fast way for most servers; the result is the same.
_PARTING = bytes(code if chr(code).isalnum() else ord(" ") for code in range(128)).ljust(256)


# An address means nothing: "user ana@example.com unknown" is "user unknown", and spam@ is not spam.
# A name begins only where none can continue, so that the search is linear. Dots after it part it from the text.
_MAIL_ADDRESS = re.compile(r"(?<![\w.+%=-])[\w.+%=-]++@(?:\.?[\w-]++)*+", re.ASCII)


def _without_names(text: str) -> str:
    if "@" in text:
        text = _MAIL_ADDRESS.sub(" ", text)
    return text if text.count(".") < _FEWEST_DOTS else _ADDRESS.sub(_ADDRESSED, text)


# Servers write "größe" and "groesse", "não" and "nao".
_SPELLED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "ł": "l"})
_ACCENT = re.compile("[\u0300-\u036f]")


def _without_accents(text: str) -> str:
    parts = unicodedata.normalize("NFD", unicodedata.normalize("NFC", text).translate(_SPELLED))
    return unicodedata.normalize("NFC", _ACCENT.sub("", parts))


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, without accents."""
    return (
        text.encode().translate(_PARTING).decode().split()
        if text.isascii()
        else _WORD.findall(_without_accents(text))
    )


# "can't", "can not" and "cannot" are equal; so are "doesn't" and "does not", with the apostrophe anywhere.
_SHORTENED = re.compile(r"\bcan (?:t|not)\b|\b(\w+?)(?:n t| nt)\b")


def _line(found: list[str]) -> str:
    """The words, separated by spaces, in one spelling: "not" written out, American, "mail" for e-mail, "mailbox"."""
    line = f" {' '.join(found)} ".replace("ised ", "ized ").replace("isation ", "ization ")
    line = line.replace(" email", " mail").replace(" mail box ", " mailbox ")
    if " can " in line or " t " in line or " nt " in line:
        line = _SHORTENED.sub(lambda it: f"{it[1]} not" if it[1] else "cannot", line)
    return line


# A name written as one word says what its parts say, too: "ReceivingRatePerm" is about a receiving rate.
_MAY_BE_JOINED = re.compile(
    "[A-Z][a-z]+[A-Z]"
)  # tried first: it is three times as fast, and most texts have no such name
_JOINED = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b")
_SEAM = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _with_parts(text: str) -> str:
    if not _MAY_BE_JOINED.search(text):
        return text
    return _JOINED.sub(lambda it: f"{it[0]} {_SEAM.sub(' ', it[0])}", text)


class Said:
    """A text prepared for the search of phrases: words in lower case, without punctuation."""

    __slots__ = ("line", "words")

    def __init__(self, text: str) -> None:
        self.line = _line(words_of(_without_names(_with_parts(text).lower())))
        self.words = frozenset(self.line.split())


def phrases(text: str) -> tuple[str, ...]:
    """The phrases of a text: separated by ``|``; ``{a,b} {c,d}`` means ``a c``, ``a d``, ``b c`` and ``b d``."""
    parts = [" ".join(part.split()) for part in text.split("|")]
    return tuple(phrase for part in parts for phrase in _spread(part))


def _spread(phrase: str) -> list[str]:
    choices = [
        part[1:-1].split(",") if part.startswith("{") else [part] for part in _CHOICE.split(phrase)
    ]
    return ["".join(each) for each in itertools.product(*choices)]


class Phrases(Generic[What]):
    """Values by phrase; if a text has several phrases, the first listed one wins.

    A phrase is consecutive words; ``&`` joins phrases that must all occur, in any order.
    """

    def __init__(self, entries: Iterable[tuple[str, What]]) -> None:
        listed = [
            ([_line(words_of(part)).split() for part in phrase.lower().split("&")], what)
            for phrase, what in entries
        ]
        counts = Counter(word for parts, _ in listed for part in parts for word in set(part))
        self._by_word: dict[str, tuple[int, dict[str, list[_Entry[What]]]]] = {}
        for order, (parts, what) in enumerate(listed):
            found = {word for part in parts for word in part}
            rarest, *others = sorted(
                found, key=lambda word: (len(word) <= _SHORT, counts[word], word)
            )
            second = others[0] if others else rarest
            lines = sorted((f" {' '.join(part)} " for part in parts), key=len, reverse=True)
            _, by_second = self._by_word.setdefault(rarest, (order, {}))
            by_second.setdefault(second, []).append((order, lines[0], tuple(lines[1:]), what))
        self._words = frozenset(self._by_word)

    def first(self, said: Said) -> What | None:
        """The value of the first listed phrase in the text."""
        best, found, line, words = _LAST, None, said.line, said.words
        for word in self._words & words:
            earliest, by_second = self._by_word[word]
            if earliest > best:
                continue
            for second, entries in by_second.items():
                if second not in words:
                    continue
                for order, first, others, what in entries:
                    if order > best:
                        break
                    if first in line and (not others or all(part in line for part in others)):
                        best, found = order, what
                        break
        return found

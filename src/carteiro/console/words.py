"""The texts of all pages, in each language: one small file a topic and language, ``words/TOPIC.LANGUAGE.toml``."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

from carteiro.model import value

ENGLISH: Final = "en"
LANGUAGES: Final[Mapping[str, str]] = {ENGLISH: "English", "pt": "Português"}
_CODES: Final[Mapping[str, str]] = {ENGLISH: "en", "pt": "pt-BR"}
_PART = re.compile(r"([a-zA-Z]{1,8})[a-zA-Z0-9-]{0,20}(?:;q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?")
_MOST_PREFERENCES = 200  # characters of the header


@value
class Words:
    """The texts in one language, by ``topic.key``."""

    language: str
    texts: Mapping[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """The text, with the values in its braces."""
        text = self.texts[key]
        return text.format_map(values) if values else text

    def count(self, key: str, number: int, **values: object) -> str:
        """The text of ``KEY_one`` or ``KEY_other``, with the ``number`` in it."""
        form = "one" if number == 1 else "other"
        return self(f"{key}_{form}", number=self.number(number), **values)

    def term(self, topic: str, name: object) -> str:
        """The text for one of the terms of the engine, such as a state; the term itself if it has none."""
        return self.texts.get(f"{topic}.{name}", str(name))

    def number(self, number: float) -> str:
        """The number, with separators of this language."""
        english = f"{int(number) if number == int(number) else number:,}"
        return english if self.language == ENGLISH else english.translate(str.maketrans(",.", ".,"))

    def percent(self, share: float, digits: int = 1) -> str:
        """The share of 1, in percent."""
        return f"{self.number(round(100 * share, digits))} %"

    @property
    def code(self) -> str:
        """The name of the language, for browsers."""
        return _CODES[self.language]


@cache
def words_in(language: str) -> Words:
    """All texts in this language."""
    folder = resources.files("carteiro.console") / "words"
    texts: dict[str, str] = {}
    for file in folder.iterdir():
        topic, _, rest = file.name.partition(".")
        if rest == f"{language}.toml":
            entries = tomllib.loads(file.read_text("utf-8"))
            texts |= {f"{topic}.{key}": text for key, text in entries.items()}
    return Words(language, texts)


def language_for(chosen: str | None, preferences: str) -> str:
    """The language that was chosen, else the best one of an Accept-Language header."""
    if chosen is not None and chosen in LANGUAGES:
        return chosen
    ranked = []
    for position, part in enumerate(preferences[:_MOST_PREFERENCES].replace(" ", "").split(",")):
        found = _PART.fullmatch(part)
        if found and found[1].lower() in LANGUAGES:
            ranked.append((-float(found[2] or 1), position, found[1].lower()))
    return min(ranked)[2] if ranked else ENGLISH

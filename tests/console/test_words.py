"""Words: every language has the same ones, and pages use no others."""

import re
import string
from collections.abc import Iterator
from pathlib import Path

import carteiro.console
from carteiro.console.words import LANGUAGES, language_for, words_in

CONSOLE = Path(str(carteiro.console.__file__)).parent
# In a template t("topic.key") and the like; in Python words("topic.key"), flash="topic.key", confirms="topic.key".
_IN_TEMPLATE = re.compile(r"""\bt(?:\.(count))?\(\s*["']([a-z_]+\.[a-z_0-9]+)["']\s*(~)?""")
_IN_PYTHON = re.compile(
    r"""(?:words(?:\.(count))?\(|flash=|confirms=)\s*["']([a-z_]+\.[a-z_0-9]+)["']()"""
)


def _used() -> Iterator[tuple[str, str]]:
    for file in sorted(CONSOLE.rglob("*")):
        pattern = {".html": _IN_TEMPLATE, ".py": _IN_PYTHON}.get(file.suffix)
        for found in pattern.finditer(file.read_text("utf-8")) if pattern else ():
            forms = ("_one", "_other") if found[1] else ("",)
            yield from ((file.name, f"{found[2]}{form}{'*' if found[3] else ''}") for form in forms)


def test_every_language_has_the_same_words_with_the_same_values() -> None:
    """And none of them is empty."""
    english = words_in("en").texts
    for language in LANGUAGES:
        texts = words_in(language).texts
        assert texts.keys() == english.keys(), language
        for key, text in texts.items():
            assert text.strip(), (language, key)
            assert _fields(text) == _fields(english[key]), (language, key)


def _fields(text: str) -> set[str | None]:
    return {field for _, field, _, _ in string.Formatter().parse(text)} - {None}


def test_pages_use_words_that_exist() -> None:
    """One whose end is a variable needs at least one word with that beginning."""
    texts = words_in("en").texts

    unknown = [
        (file, key)
        for file, key in _used()
        if not any(
            each.startswith(key[:-1]) if key.endswith("*") else each == key for each in texts
        )
    ]

    assert unknown == []


def test_language_is_the_chosen_one_else_the_best_of_the_browser() -> None:
    """Neither a language that is unknown nor a malformed header matters."""
    cases = {
        (None, ""): "en",
        (None, "pt-BR,pt;q=0.9,en;q=0.8"): "pt",
        (None, "de, en;q=0.2, pt-PT;q=0.7"): "pt",
        (None, "en-GB, pt"): "en",
        (None, "x" * 100_000): "en",
        (None, "pt;q=9, en;q=0.1"): "en",
        ("pt", "en"): "pt",
        ("xx", "pt"): "pt",
    }

    assert {case: language_for(*case) for case in cases} == cases


def test_numbers_are_written_as_the_language_does() -> None:
    assert words_in("en").number(1234567.5) == "1,234,567.5"
    assert words_in("pt").number(1234567.5) == "1.234.567,5"
    assert words_in("en").number(10.0) == "10"
    assert words_in("pt").percent(1 / 3) == "33,3 %"

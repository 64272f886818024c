"""The notation of the rules: a misspelled line is an error, not another phrase."""

import pytest

from carteiro.policy.rules import systems, words
from carteiro.policy.rules.ruling import BAD_MESSAGE, TOO_FAST, meanings
from carteiro.policy.rules.words import TextRule, rules


def test_rules_are_read_from_text() -> None:
    """A name, a ruling and phrases, on one line or several."""
    text = """
        # a remark: not a rule
        fast TOO_FAST: slow down | too {fast,many}
        content BAD_MESSAGE:
            junk
            | full of {listed}
    """

    assert rules(text, {"listed": "spam"}) == (
        TextRule("fast", TOO_FAST, ("slow down", "too fast", "too many")),
        TextRule("content", BAD_MESSAGE, ("junk", "full of spam")),
    )


def test_meanings_are_read_from_text() -> None:
    assert meanings("TOO_FAST: 421 450\nBAD_MESSAGE:\n 554") == {
        "421": TOO_FAST,
        "450": TOO_FAST,
        "554": BAD_MESSAGE,
    }


def test_unknown_ruling_is_an_error() -> None:
    with pytest.raises(AttributeError, match="TOO_FASTER"):
        rules("fast TOO_FASTER: slow down")
    with pytest.raises(KeyError, match="TOO_FASTER"):
        meanings("TOO_FASTER: 421")


def test_phrases_are_words_in_lower_case() -> None:
    """A heading without its colon, or an unknown name in braces, would show up here."""
    texts = [each for rule in words.TEXT_RULES for each in rule.phrases]
    for system in systems.SYSTEMS:
        texts += [*system.signs, *(each for rule in system.rules for each in rule.phrases)]

    assert [text for text in texts if set(text) & set("_:#{}") or text != text.lower()] == []

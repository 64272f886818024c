"""Estimate how answers would be judged that nobody has seen: rows without the phrases that they alone support.

A phrase is supported by each different answer that contains it: of the file, and of the documented ones in the tests. A
phrase with the support of a single row may have been written for that row, so the row is judged as if the phrase did
not exist. The same with parts of the file instead of single rows: a phrase may have been written for answers that are
much alike. Codes are not left out: they are defined by standards, not learnt from answers.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias
from unittest.mock import patch

from carteiro.policy.rules import systems, words
from carteiro.policy.rules.phrases import Phrases, Said

Rows: TypeAlias = Sequence[Mapping[str, str]]

_TEXTS = {"": words.TEXT_RULES} | {system.name: system.rules for system in systems.SYSTEMS}


class LeftOut:
    """The phrases of a file's answers, and rules without those that one part of them alone supports.

    Without a number of parts, each row is one.
    """

    def __init__(self, rows: Rows, documented: Iterable[str], count: int | None = None) -> None:
        shuffled = random.Random(0).sample(rows, len(rows))
        count = count or len(rows)
        self.parts: Sequence[Rows] = [shuffled[number::count] for number in range(count)]
        self._by_word: defaultdict[str, list[tuple[list[str], str]]] = defaultdict(list)
        for phrase in {
            each for listed in _TEXTS.values() for rule in listed for each in rule.phrases
        }:
            parts = [Said(part).line for part in phrase.split("&")]
            self._by_word[max(" ".join(parts).split(), key=len)].append((parts, phrase))
        said = [_said(text) for text in (*documented, *(row["answer"] for row in rows))]
        found = {each.line: self._phrases(each) for each in said}
        self._support = Counter(phrase for each in found.values() for phrase in each)

    def _phrases(self, said: Said) -> set[str]:
        return {
            phrase
            for word in said.words & self._by_word.keys()
            for parts, phrase in self._by_word[word]
            if all(part in said.line for part in parts)
        }

    @contextmanager
    def without(self, part: Rows) -> Iterator[None]:
        """Judge as if the phrases that only this part supports did not exist."""
        found = {said.line: said for said in (_said(row["answer"]) for row in part)}
        support = Counter(phrase for said in found.values() for phrase in self._phrases(said))
        own = {each for each, count in support.items() if count == self._support[each]}
        if not own:
            yield
            return
        left = {
            name: Phrases(
                (phrase, rule) for rule in listed for phrase in rule.phrases if phrase not in own
            )
            for name, listed in _TEXTS.items()
            if any(own.intersection(rule.phrases) for rule in listed)
        }
        texts = left.pop("", words.TEXTS)
        with patch.object(words, "TEXTS", texts), patch.dict(systems._RULES, left):  # noqa: SLF001 - nobody else asks
            yield


def _said(answer: str) -> Said:
    return Said(f"{answer[:1]}xx {answer}")

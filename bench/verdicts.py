"""What it costs to judge an answer: all labelled answers of the tests, beside the least that any classifier must do."""

import argparse
import re
import statistics
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path

from carteiro.policy.classify import classify_smtp
from carteiro.policy.consequences import RULINGS
from carteiro.policy.rules import words
from figures import print_table

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from support.answers import ALL

_ROUNDS = 7
_REPLIES = [(each.text, each.stage, each.mx) for each in ALL if not each.provider]
_BY_CODE = {name.rpartition(".")[2]: ruling for name, ruling in RULINGS.items()}

# A classifier as most are: a list of patterns, tried one after the other, here as many as we have rules for texts.
_PATTERNS = [
    re.compile("|".join(phrase.replace(" & ", ".*") for phrase in rule.phrases), re.IGNORECASE)
    for rule in words.TEXT_RULES
]


def _ours() -> None:
    for text, stage, mx in _REPLIES:
        classify_smtp(text, stage=stage, mx=mx)


def _pattern_by_pattern() -> None:
    for text, _, _ in _REPLIES:
        next((pattern for pattern in _PATTERNS if pattern.search(text)), None)


def _bare_look_up() -> None:
    for text, _, _ in _REPLIES:
        _BY_CODE.get(text[:3])


def microseconds(judge: Callable[[], None], times: int) -> float:
    """The median of several rounds, per answer; of the processor's time, as nothing is waited for."""
    rounds = timeit.repeat(judge, number=times, repeat=_ROUNDS, timer=time.process_time)
    return statistics.median(rounds) / times / len(_REPLIES) * 1e6


def measure(times: int = 20) -> None:
    """Print the table."""
    print(f"\nClassification of an SMTP reply, {len(_REPLIES)} labelled ones, in turn\n")
    ours = microseconds(_ours, times)
    rows = [["ours: stage, system, codes, words", f"{ours:.2f}", "1.0x"]]
    for name, peer in (
        ("the same words as a list of patterns", _pattern_by_pattern),
        ("a bare look-up of the first three characters", _bare_look_up),
    ):
        theirs = microseconds(peer, max(1, times // 4))
        rows.append([name, f"{theirs:.2f}", f"{theirs / ours:.3g}x"])
    print_table(["what", "us per answer", "of ours"], rows)


def main() -> None:
    """Measure, as often as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    measure(parser.parse_args().times)


if __name__ == "__main__":
    main()

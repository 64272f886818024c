"""Cost of judging an answer: all labelled answers of the tests, and the minimum that any classifier must do.

With `--answers FILE`, how well answers are judged that you have labelled yourself: a CSV with the columns ``truth``
(dead, disabled, perm, retry, or source, which is not counted), ``stage``, ``mx`` (both may be empty) and ``answer``.
"""

import argparse
import csv
import re
import statistics
import sys
import time
import timeit
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from carteiro.policy.classify import classify_smtp
from carteiro.policy.consequences import RULINGS, suppression
from carteiro.policy.rules import words
from carteiro.policy.rules.ruling import Suppression
from carteiro.policy.stage import Stage
from carteiro.providers.answers import judge_answer
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
    if rule.phrases
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


def score(rows: Iterable[Mapping[str, str]]) -> dict[str, int]:
    """Correct verdicts, wrong permanent failures, and answers that only the code decides."""
    found: Counter[str] = Counter()
    for row in rows:
        stage = Stage(row["stage"]) if row["stage"] else None
        failure = judge_answer(row["answer"], provider="smtp", stage=stage, mx=row["mx"])
        at_rcpt = judge_answer(
            row["answer"], provider="smtp", stage=stage or Stage.RCPT, mx=row["mx"]
        )
        is_counted = row["truth"] != "source"
        found["answers"] += 1
        found["counted"] += is_counted
        found["right"] += is_counted and failure.retryable == (row["truth"] == "retry")
        found["given_up"] += row["truth"] != "dead" and suppression(at_rcpt) is Suppression.HARD
        found["by_code"] += failure.rule.startswith(("smtp.code.", "smtp.class.", "unknown"))
    return {name: found[name] for name in ("answers", "counted", "right", "given_up", "by_code")}


def tell(file: Path) -> None:
    """Print the score of a file."""
    with file.open(encoding="utf-8", newline="") as lines:
        found = score(csv.DictReader(lines))
    rows = [
        ["right in whether to try again", f"{found['right'] / max(1, found['counted']):.1%}"],
        ["existing mailboxes given up for good", str(found["given_up"])],
        ["decided by the bare code", f"{found['by_code'] / max(1, found['answers']):.1%}"],
    ]
    print(f"\n{found['answers']} labelled answers, {found['counted']} of them counted\n")
    print_table(["what", "found"], rows)


def main() -> None:
    """Measure, as often as asked; or score a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument(
        "--answers", type=Path, help="a CSV of labelled answers: score them instead"
    )
    asked = parser.parse_args()
    if asked.answers:
        tell(asked.answers)
    else:
        measure(asked.times)


if __name__ == "__main__":
    main()

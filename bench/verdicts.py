"""Cost of judging an answer: all labelled answers of the tests, and the minimum that any classifier must do.

With `--answers FILE`, how well answers are judged that you have labelled yourself: a CSV with the columns ``truth``
(dead, disabled, perm, retry, or source, which is not counted), ``stage``, ``mx`` (both may be empty) and ``answer``.
`--leave-out` adds an estimate for answers that nobody has seen, by single rows or by as many parts as it says: see
`left_out.py`.
"""

import argparse
import csv
import math
import re
import statistics
import sys
import time
import timeit
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache
from pathlib import Path

from carteiro.policy.classify import classify_smtp
from carteiro.policy.consequences import RULINGS, suppression
from carteiro.policy.rules import words
from carteiro.policy.rules.ruling import Suppression
from carteiro.policy.stage import Stage
from carteiro.providers.answers import judge_answer
from figures import print_table
from left_out import LeftOut, Rows

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from support.answers import ALL

_ROUNDS = 7
_Z = 1.96  # of the 95 % interval
_REPLIES = [(each.text, each.stage, each.mx) for each in ALL if not each.provider]
_BY_CODE = {name.rpartition(".")[2]: ruling for name, ruling in RULINGS.items()}


@cache
def _patterns() -> list[re.Pattern[str]]:
    """A classifier as most are: patterns, tried one after the other, here as many as we have rules for texts."""
    return [
        re.compile("|".join(phrase.replace(" & ", ".*") for phrase in rule.phrases), re.IGNORECASE)
        for rule in words.TEXT_RULES
        if rule.phrases
    ]


def _ours() -> None:
    for text, stage, mx in _REPLIES:
        classify_smtp(text, stage=stage, mx=mx)


def _pattern_by_pattern() -> None:
    for text, _, _ in _REPLIES:
        next((pattern for pattern in _patterns() if pattern.search(text)), None)


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


def score(rows: Rows, left_out: LeftOut | None = None) -> dict[str, int]:
    """Correct verdicts, wrong permanent failures, and answers that only the code decides."""
    found: Counter[str] = Counter()
    for part in left_out.parts if left_out else [rows]:
        with left_out.without(part) if left_out else nullcontext():
            for row in part:
                _count(row, found)
    return {name: found[name] for name in ("answers", "counted", "right", "given_up", "by_code")}


def _count(row: Mapping[str, str], found: Counter[str]) -> None:
    stage = Stage(row["stage"]) if row["stage"] else None
    failure = judge_answer(row["answer"], provider="smtp", stage=stage, mx=row["mx"])
    at_rcpt = judge_answer(row["answer"], provider="smtp", stage=stage or Stage.RCPT, mx=row["mx"])
    is_counted = row["truth"] != "source"
    found["answers"] += 1
    found["counted"] += is_counted
    found["right"] += is_counted and failure.retryable == (row["truth"] == "retry")
    found["given_up"] += row["truth"] != "dead" and suppression(at_rcpt) is Suppression.HARD
    found["by_code"] += failure.rule.startswith(("smtp.code.", "smtp.class.", "unknown"))


def bounds(part: int, whole: int) -> tuple[float, float]:
    """The 95 % interval of Wilson for a share."""
    if not whole:
        return 0.0, 1.0
    share, square = part / whole, _Z * _Z
    middle = share + square / (2 * whole)
    reach = _Z * math.sqrt(share * (1 - share) / whole + square / (4 * whole * whole))
    return (middle - reach) / (1 + square / whole), (middle + reach) / (1 + square / whole)


def _share(part: int, whole: int) -> str:
    low, high = bounds(part, whole)
    return f"{part / max(1, whole):.1%} ({low:.1%}-{high:.1%})"


def tell(file: Path, parts: int | None = None) -> None:
    """Print the score of a file; with an estimate if there is a number of parts, 0 for single rows."""
    with file.open(encoding="utf-8", newline="") as lines:
        answers = list(csv.DictReader(lines))
    scores = {"found": score(answers)}
    if parts is not None:
        left_out = LeftOut(answers, [each.text for each in ALL], parts)
        scores[f"without the phrases of one {'part' if parts else 'answer'}"] = score(
            answers, left_out
        )
    found = scores.values()
    rows = [
        ["right in whether to try again", *(_share(it["right"], it["counted"]) for it in found)],
        ["existing mailboxes given up for good", *(str(it["given_up"]) for it in found)],
        ["decided by the bare code", *(_share(it["by_code"], it["answers"]) for it in found)],
    ]
    count = scores["found"]
    print(f"\n{count['answers']} labelled answers, {count['counted']} of them counted\n")
    print_table(["what", *scores], rows)


def main() -> None:
    """Measure, as often as asked; or score a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument(
        "--answers", type=Path, help="a CSV of labelled answers: score them instead"
    )
    parser.add_argument(
        "--leave-out",
        type=int,
        nargs="?",
        const=0,
        metavar="PARTS",
        help="with --answers: estimate unseen answers, too",
    )
    asked = parser.parse_args()
    if asked.answers:
        tell(asked.answers, asked.leave_out)
    else:
        measure(asked.times)


if __name__ == "__main__":
    main()

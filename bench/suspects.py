"""Speed that other tenants keep while one tenant has 2,000 suspects, with calls of 50 and of 250 ms.

With suspects and without run at the same time, each in a process and on a file of its own: a noisy moment hits both.
The first window is the time in which a new worker runs no suspect, and puts them off; in the second it runs some.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from figures import HERE, measure_as_asked, print_table, say

_CALLS_MS = (50, 250)
_WINDOWS = ("first 30 s: none runs", "next 30 s: some run")


def measure(suspects: int, pairs: int) -> None:
    """Print the ratios, and what was counted."""
    rows = [row for call_ms in _CALLS_MS for row in _rows(call_ms, suspects, pairs)]
    print(f"\nOther tenants' speed, with {suspects:,} suspects of one tenant / without\n")
    heads = [
        "calls",
        "when",
        "ratio",
        "claims of suspects",
        "suspects run",
        "seconds kept for them",
    ]
    print_table(heads, rows)


def _rows(call_ms: int, suspects: int, pairs: int) -> list[list[str]]:
    ratios: list[list[float]] = [[] for _ in _WINDOWS]
    last: Sequence[dict[str, Any]] = ()
    for pair in range(pairs):
        last, without = _at_once(call_ms, suspects)
        for window, (ours, theirs) in enumerate(zip(last, without, strict=True)):
            ratios[window].append(ours["others_per_second"] / theirs["others_per_second"])
        say(f"{call_ms} ms, pair {pair + 1} of {pairs}: {[each[-1] for each in ratios]}")
    return [
        [
            f"{call_ms} ms",
            name,
            f"{statistics.median(found):.3f} ({min(found):.3f}-{max(found):.3f})",
            f"{counts['claims_of_suspects']}",
            f"{counts['suspects_run']}",
            f"{counts['alone_s']:.2f}",
        ]
        for name, found, counts in zip(_WINDOWS, ratios, last, strict=True)
    ]


def _at_once(call_ms: int, suspects: int) -> list[list[dict[str, Any]]]:
    """The results of both, window by window."""
    both = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "ours.suspects", "--call-ms", str(call_ms)),
                *("--suspects", str(number)),
            ],
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in (suspects, 0)
    ]
    for each in both:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in both:
        assert each.stdin is not None
        each.stdin.close()
    told = [[json.loads(line) for line in each.stdout] for each in both if each.stdout is not None]
    assert [each.wait() for each in both] == [0, 0]
    return told


if __name__ == "__main__":
    measure_as_asked(measure, __doc__, mails=2000)

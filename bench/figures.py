"""Measure in a process of its own, compare by interleaved pairs, print a table."""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from processes import cpu_seconds
from watched import watched

HERE = Path(__file__).parent
_START = time.monotonic()


def say(text: str) -> None:
    """Write a progress line."""
    print(f"[{time.monotonic() - _START:7.1f} s] {text}", file=sys.stderr, flush=True)


def measure_as_asked(measure: Callable[[int, int], None], about: str | None, *, mails: int) -> None:
    """Measure the number of mails and pairs given on the command line."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--mails", type=int, default=mails)
    parser.add_argument("--pairs", type=int, default=5)
    asked = parser.parse_args()
    measure(asked.mails, asked.pairs)


class Missing(Exception):
    """Something that is to be measured is not on this machine; the text says what to do."""


# --- one measure ------------------------------------------------------------------------------


@dataclass
class Figure:
    """Time for a number of items; CPU is user and system time of all threads, for servers of all their processes."""

    name: str
    count: int
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    server_cpu_seconds: float = 0.0

    @property
    def per_second(self) -> float:
        """Items per second of wall time."""
        return self.count / self.seconds

    @property
    def cpu_us(self) -> float:
        """Microseconds of CPU per item."""
        return self.cpu_seconds / max(1, self.count) * 1e6  # none: another process had them all

    @property
    def server_cpu_us(self) -> float:
        """Microseconds of the server's CPU per item."""
        return self.server_cpu_seconds / max(1, self.count) * 1e6

    @property
    def whole_cpu_us(self) -> float:
        """Microseconds of CPU per item on both sides."""
        return self.cpu_us + self.server_cpu_us


@contextmanager
def measured(
    name: str, count: int, progress: Callable[[], object] | None = None
) -> Iterator[Figure]:
    """Time the block in this process, and the servers that ``BENCH_SERVER_PIDS`` name; complete when the block ends.

    A block that waits says by ``progress`` how far it is: it ends with an error when that stands still.
    """
    figure = Figure(name, count)
    of_server, cpu, wall = _server_cpu_seconds(), _cpu_seconds(), time.perf_counter()
    with watched(name, progress) if progress else nullcontext():
        yield figure
    figure.seconds = time.perf_counter() - wall
    figure.cpu_seconds = _cpu_seconds() - cpu
    figure.server_cpu_seconds = _server_cpu_seconds() - of_server


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _server_cpu_seconds() -> float:
    pids = os.environ.get("BENCH_SERVER_PIDS", "").split()
    return sum(cpu_seconds(int(pid)) for pid in pids)


# --- a process of its own ---------------------------------------------------------------------


def report(figure: Figure) -> None:
    """Hand a figure to the process that started this one; readable as it stands, too."""
    rates = {"per_second": round(figure.per_second), "cpu_us": round(figure.cpu_us, 1)}
    print(json.dumps(asdict(figure) | rates), flush=True)


def reported(figure: str) -> Figure:
    """A figure that another process handed over, from its line."""
    line = json.loads(figure)
    return Figure(**{each.name: line[each.name] for each in fields(Figure) if each.name in line})


def figures_of(
    module: str,
    *arguments: object,
    environ: Mapping[str, str] | None = None,
    python: Path | str = sys.executable,
) -> dict[str, Figure]:
    """Run a module of this folder in a process of its own; what it reported, by name."""
    lines = printed_by([python, "-m", module, *arguments], environ)
    return {figure.name: figure for figure in map(reported, lines)}


def lines_of(
    module: str, *arguments: object, environ: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Run a module of this folder in a process of its own; the objects that it printed."""
    command = [sys.executable, "-m", module, *arguments]
    return [json.loads(line) for line in printed_by(command, environ)]


def printed_by(command: Sequence[object], environ: Mapping[str, str] | None = None) -> list[str]:
    """Run it in this folder; the lines that it printed."""
    given = os.environ | {"PYTHONPATH": str(HERE)} | dict(environ or {})
    ran = subprocess.run(
        [*map(str, command)], cwd=HERE, env=given, stdout=subprocess.PIPE, check=True, text=True
    )
    return ran.stdout.splitlines()


# --- pairs ------------------------------------------------------------------------------------


@dataclass
class Pairs:
    """Two measures taken in turns, so that a noisy moment hits both."""

    ours: list[float]
    theirs: list[float]

    @property
    def ratios(self) -> list[float]:
        """Ours over theirs, pair by pair, ascending."""
        return sorted(a / b for a, b in zip(self.ours, self.theirs, strict=True))

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return statistics.median(self.ratios)

    def __str__(self) -> str:
        """Median and spread, as a table cell."""
        return f"{self.ratio:.2f} ({self.ratios[0]:.2f}-{self.ratios[-1]:.2f})"


def in_pairs(
    name: str, ours: Callable[[], float], theirs: Callable[[], float], *, rounds: int = 7
) -> Pairs:
    """Measure both ``rounds`` times, who goes first changing each time."""
    pairs = Pairs([], [])
    for index in range(rounds):
        turns = [(ours, pairs.ours), (theirs, pairs.theirs)]
        for measure, results in turns if index % 2 == 0 else reversed(turns):
            results.append(measure())
        say(
            f"{name}: pair {index + 1} of {rounds}: {pairs.ours[-1]:,.1f} / {pairs.theirs[-1]:,.1f}"
        )
    return pairs


# --- a table ----------------------------------------------------------------------------------


def row(figure: Figure, *others: Figure) -> list[str]:
    """Name, rate, CPU, and how many times each other's rate it is."""
    ratios = [f"{figure.per_second / other.per_second:.2f}x" for other in others]
    return [figure.name, f"{figure.per_second:,.0f}", f"{figure.cpu_us:,.1f}", *ratios]


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print the rows as a Markdown table, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    print(_line(heads, widths))
    print("|" + "|".join(f"{'-' * (width + 1)}:" for width in widths) + "|")
    for each in rows:
        print(_line(each, widths))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"

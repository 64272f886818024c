"""Progress of a long operation: a bar on a terminal, else a line at intervals."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

SECONDS_BETWEEN_LINES = 5.0

Share: TypeAlias = Callable[[float], None]
Count: TypeAlias = Callable[[int], None]


@contextmanager
def share_done(what: str) -> Iterator[Share]:
    """Report the completed share, from 0 to 1, on stderr."""
    if sys.stderr.isatty():
        with _bar(BarColumn(), TextColumn("{task.percentage:>3.0f} %")) as bar:
            task = bar.add_task(what, total=1.0)
            yield lambda share: bar.update(task, completed=share)
    else:
        say = _now_and_then()
        yield lambda share: say(f"{what}: {share:.0%}")


@contextmanager
def count_done(what: str) -> Iterator[Count]:
    """Report the completed number of an unknown total, on stderr."""
    if sys.stderr.isatty():
        with _bar(TextColumn("{task.completed:,.0f}")) as bar:
            task = bar.add_task(what, total=None)
            yield lambda count: bar.update(task, completed=count)
    else:
        say = _now_and_then()
        yield lambda count: say(f"{what}: {count:,}")


def _bar(*columns: BarColumn | TextColumn) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        *columns,
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def _now_and_then() -> Callable[[str], None]:
    said_at = time.monotonic()

    def say(line: str) -> None:
        nonlocal said_at
        if time.monotonic() - said_at >= SECONDS_BETWEEN_LINES:
            said_at = time.monotonic()
            typer.echo(line, err=True)

    return say

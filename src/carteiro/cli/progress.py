"""Progress of a long operation: a bar on a terminal, else a line at intervals."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

SECONDS_BETWEEN_LINES = 5.0

Share: TypeAlias = Callable[[float], None]
Count: TypeAlias = Callable[[int], None]


def share_done(what: str) -> AbstractContextManager[Share]:
    """Report the completed share, from 0 to 1, on stderr."""
    return _done(what, "{:.0%}", 1.0, BarColumn(), TextColumn("{task.percentage:>3.0f} %"))


def count_done(what: str) -> AbstractContextManager[Count]:
    """Report the completed number of an unknown total, on stderr."""
    return _done(what, "{:,}", None, TextColumn("{task.completed:,.0f}"))


@contextmanager
def _done(
    what: str, form: str, total: float | None, *columns: BarColumn | TextColumn
) -> Iterator[Callable[[float], None]]:
    if sys.stderr.isatty():
        with _bar(*columns) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.update(task, completed=done)
    else:
        say = _now_and_then()
        yield lambda done: say(f"{what}: {form.format(done)}")


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

"""Output of commands: tables for people; with ``--json`` one document, and for lists one a line.

Data goes to stdout, messages about it to stderr. Unprintable characters are escaped, so that
no answer of a mail server can control a terminal.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

import orjson
import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from carteiro.cli.options import in_words
from carteiro.views.moments import in_iso

Row = TypeVar("Row")

_WIDE = 4096  # without a terminal no line is folded
_LEAST_WIDTH = 12  # of a column that can be folded
_GAP = 2  # between columns


class Column(NamedTuple, Generic[Row]):
    """A heading and the cell of a row; a whole column is never folded."""

    heading: str
    of: Callable[[Row], object]
    is_whole: bool = False


class Printer:
    """Prints for people or for programs."""

    def __init__(self, *, as_json: bool) -> None:
        self.is_for_programs = as_json
        self._console = _console()

    def rows(
        self,
        rows: Sequence[Row],
        columns: Sequence[Column[Row]],
        document: Callable[[Row], Mapping[str, Any]],
        *,
        what: str = "",
    ) -> None:
        """A list: one table, or one JSON document a line; say if there are none of ``what``."""
        if self.is_for_programs:
            for row in rows:
                _write_json(document(row))
        elif rows:
            self._print(_table(rows, columns))
        elif what:
            self.none(what)

    def none(self, what: str) -> None:
        """Say that a list is empty; print nothing for programs."""
        if not self.is_for_programs:
            note(f"No {what} found.")

    def thing(self, document: Mapping[str, Any], facts: Mapping[str, object]) -> None:
        """One thing: its fields line by line, or one JSON document."""
        if self.is_for_programs:
            _write_json(document)
            return
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True, style="dim")
        table.add_column(overflow="fold")
        for name, fact in facts.items():
            if fact not in {None, "", ()}:
                table.add_row(name, cell(fact))
        self._console.print(table)

    def beside(self, title: str, rows: Sequence[Row], columns: Sequence[Column[Row]]) -> None:
        """A table of the thing printed before it, for people; its document has it already."""
        if not self.is_for_programs and rows:
            self._console.print()
            self._console.print(Text(title, style="bold"))
            self._print(_table(rows, columns))

    def answer(self, document: Mapping[str, Any], sentence: str) -> None:
        """A result: a sentence, or one JSON document."""
        if self.is_for_programs:
            _write_json(document)
        else:
            self._console.print(cell(sentence), soft_wrap=True)

    def text(self, text: str) -> None:
        """A text, unchanged, for people."""
        if not self.is_for_programs:
            typer.echo("\n".join(printable(line) for line in text.splitlines()))

    def _print(self, table: Table) -> None:
        """Fold columns to fit the terminal; if some would vanish, leave it to the terminal to fold lines."""
        fits = _least_width(table) <= self._console.width
        console = self._console if fits else _console(_WIDE)
        with console.capture() as taken:
            console.print(table)
        # Without the spaces that fill the last column: one long cell would make every line as long.
        typer.echo("\n".join(line.rstrip() for line in taken.get().splitlines()))

    def secret(self, document: Mapping[str, Any], sentence: str, secret: str) -> None:
        """A secret that is shown once: on its own line, easy to copy."""
        self.answer(document, sentence)
        if not self.is_for_programs:
            self._console.print(f"  {secret}", style="bold", soft_wrap=True, markup=False)


def note(sentence: str) -> None:
    """Print a note for people."""
    typer.echo(sentence, err=True)


def cell(value: object) -> Text:
    """A value for people; brackets in it are not markup."""
    return Text(_told(value))


def printable(text: str) -> str:
    """The text, with control characters of terminals escaped."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _told(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return in_iso(value)
        case timedelta():
            return in_words(value)
        case tuple() | list():
            return ", ".join(_told(each) for each in value)
        case _:
            return printable(str(value))


def _table(rows: Sequence[Row], columns: Sequence[Column[Row]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.heading, no_wrap=column.is_whole, overflow="fold")
    for row in rows:
        table.add_row(*(cell(column.of(row)) for column in columns))
    return table


def _least_width(table: Table) -> int:
    """The width at which each column can still be read."""
    widths = [
        natural if column.no_wrap else min(natural, _LEAST_WIDTH)
        for column in table.columns
        for natural in [max(cell_len(str(each)) for each in (column.header, *column.cells))]
    ]
    return sum(widths) + _GAP * (len(widths) - 1)


def _console(width: int | None = None) -> Console:
    if not sys.stdout.isatty():
        width = _WIDE
    return Console(width=width, highlight=False, emoji=False)


def _write_json(document: Mapping[str, Any]) -> None:
    typer.echo(orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS).decode())

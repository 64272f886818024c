"""Statements and their parameters, by name.

A list is one JSON text, which ``json_each`` expands in the statement; rows to be written are passed as they are, to a
statement that is run for each or has places for many. Either way it is one call for many rows.
"""

import re
import sqlite3
from collections.abc import Sequence
from functools import cache
from itertools import chain

import orjson

from carteiro.errors import TextUnfit
from carteiro.stores.sqlite.opening import split, sql

_ROWS_AT_ONCE = (100, 10)
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # but not a text with these six literal characters


@cache
def _parts(operation: str) -> tuple[list[str], str]:
    """The statements under one name: those that only write, and the last."""
    *before, last = split(sql(operation))
    return before, last


def run(db: sqlite3.Connection, operation: str, **parameters: object) -> sqlite3.Cursor:
    """Run a statement by name; if the name has several, return the result of the last."""
    before, last = _parts(operation)
    for each in before:
        db.execute(each, parameters)
    return db.execute(last, parameters)


def run_many(db: sqlite3.Connection, operation: str, rows: Sequence[Sequence[object]]) -> int:
    """Run a statement by name for each row of parameters; without rows, nothing. Return how many rows it wrote."""
    return db.executemany(_parts(operation)[1], rows).rowcount if rows else 0


def insert_many(
    db: sqlite3.Connection,
    operation: str,
    rows: Sequence[tuple[object, ...]],
    shared: tuple[object, ...] = (),
) -> int:
    """As `run_many`, for ``INSERT … VALUES (?1, …)``: many rows are one statement, which takes half the time.

    ``shared`` are the first parameters of every row: ?1, ?2, and so on.
    """
    start = written = 0
    for size in _ROWS_AT_ONCE:
        while len(rows) - start >= size:
            values = [*shared, *chain.from_iterable(rows[start : start + size])]
            written += db.execute(_listed(operation, size), values).rowcount
            start += size
    return written + run_many(db, operation, [shared + row for row in rows[start:]])


@cache
def _listed(operation: str, size: int) -> str:
    head, values, row = _parts(operation)[1].rpartition("VALUES ")
    return head + values + ", ".join([row.rstrip(";")] * size)


def as_json(rows: Sequence[object]) -> str:
    """A list as one JSON text; refuses U+0000, because SQLite would cut a text there."""
    try:
        told = orjson.dumps(rows).decode()
    except orjson.JSONEncodeError as error:
        if "surrogates" not in str(error):
            raise
        raise TextUnfit(error) from error
    if "\\u0000" in told and _NUL.search(told):
        raise TextUnfit
    return told

"""Statements and their parameters, by name.

A list is one JSON text, which ``json_each`` expands in the statement; rows to be written are passed as they are to a
statement that is run for each. Either way it is one call for many rows.
"""

import re
import sqlite3
from collections.abc import Sequence
from functools import cache

import orjson

from carteiro.errors import TextUnfit
from carteiro.stores.sqlite.opening import split, sql

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


def run_many(db: sqlite3.Connection, operation: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Run a statement by name for each row of parameters; without rows, nothing."""
    if rows:
        db.executemany(_parts(operation)[1], rows)


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

"""Statements and their parameters: lists travel as JSON.

Lists travel into a statement as one JSON text and are unfolded there by ``json_each``: one call for
many rows, during which SQLite runs without the interpreter's lock. A call per row would give the
lock up and take it back each time, and wait for the event loop each time.
"""

import re
import sqlite3
from collections.abc import Sequence
from functools import cache

import orjson

from carteiro.errors import TextUnfit
from carteiro.stores.sqlite.opening import split, sql

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # and none that stands in a text as these six letters


@cache
def _parts(operation: str) -> tuple[list[str], str]:
    """The statements under one name: those that only write, and the last."""
    *before, last = split(sql(operation))
    return before, last


def run(db: sqlite3.Connection, operation: str, **parameters: object) -> sqlite3.Cursor:
    """Run a statement by name; where there are several under it, return what the last one says."""
    before, last = _parts(operation)
    for each in before:
        db.execute(each, parameters)
    return db.execute(last, parameters)


def as_json(rows: Sequence[object]) -> str:
    """A list as one JSON text; SQLite would read a text in it up to its first U+0000 alone, and take it for another."""
    told = with_documents(rows)
    if "\\u0000" in told and _NUL.search(told):
        raise TextUnfit
    return told


def with_documents(rows: Sequence[object]) -> str:
    """As `as_json`, of rows with documents in them that stay JSON: what texts those hold is nobody's business here."""
    try:
        return orjson.dumps(rows).decode()
    except orjson.JSONEncodeError as error:
        if "surrogates" not in str(error):
            raise
        raise TextUnfit(error) from error

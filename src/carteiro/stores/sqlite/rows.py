"""Statements and their parameters: lists travel as JSON.

Lists travel into a statement as one JSON text and are unfolded there by ``json_each``: one call for
many rows, during which SQLite runs without the interpreter's lock. A call per row would give the
lock up and take it back each time, and wait for the event loop each time.
"""

import sqlite3
from collections.abc import Sequence
from functools import cache

import orjson

from carteiro.stores.sqlite.opening import sql

statement = cache(sql)


def run(db: sqlite3.Connection, operation: str, **parameters: object) -> sqlite3.Cursor:
    """Run the statement of one operation's file."""
    return db.execute(statement(operation), parameters)


def as_json(rows: Sequence[object]) -> str:
    """A list as one JSON text."""
    return orjson.dumps(rows).decode()

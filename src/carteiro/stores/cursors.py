"""Cursors of lists, as text that fits into a URL: the time and the id of a page's last row. Every store uses them.

Both belong to the reader's own row: a cursor tells nothing about the rows of other tenants.
"""

import base64

import orjson

from carteiro.errors import BadCursor
from carteiro.model import Cursor

FAR = 1 << 62  # later than any moment, in milliseconds; no store counts beyond it


def cursor_at(at: int, place: str) -> Cursor:
    """The cursor of a page whose last row has this time, in milliseconds, and this id."""
    return Cursor(base64.urlsafe_b64encode(orjson.dumps((at, place))).rstrip(b"=").decode())


def key_of(cursor: Cursor | None, first: tuple[int, str]) -> tuple[int, str]:
    """The time and id that the next page comes after; ``first`` without a cursor."""
    if cursor is None:
        return first
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        key = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except ValueError as error:
        raise _bad() from error
    match key:
        case [int(at), str(place)] if abs(at) <= FAR and "\0" not in place:
            return at, place
    raise _bad()


def _bad() -> BadCursor:
    return BadCursor("This cursor was not given out by a list: use `next` of the page before")

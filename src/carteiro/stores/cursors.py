"""Where a page ended, as text that fits into a URL: the sort key of its last row, the same in every store."""

import base64
from typing import TypeVar, cast

import orjson

from carteiro.errors import BadCursor
from carteiro.model import Cursor

FAR = 1 << 62  # later than any moment, in milliseconds; beyond it no store counts
Place = TypeVar("Place", int, str)


def cursor_at(at: int, place: int | str) -> Cursor:
    """The cursor of a page whose last row is this one: its time in milliseconds, then what parts equal times."""
    return Cursor(base64.urlsafe_b64encode(orjson.dumps((at, place))).rstrip(b"=").decode())


def key_of(cursor: Cursor | None, first: tuple[int, Place]) -> tuple[int, Place]:
    """The row that the next page comes after; ``first`` without a cursor, and an example of what one holds."""
    if cursor is None:
        return first
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        key = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except ValueError as error:
        raise _bad() from error
    if not isinstance(key, list) or [type(part) for part in key] != [int, type(first[1])]:
        raise _bad()
    if any(isinstance(part, int) and abs(part) > FAR for part in key):
        raise _bad()
    return cast("tuple[int, Place]", tuple(key))


def _bad() -> BadCursor:
    return BadCursor("This cursor was not given out by a list: use `next` of the page before")

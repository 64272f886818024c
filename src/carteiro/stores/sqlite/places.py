"""Rows that a claim has read of its jobs, kept with the claim: declare and settle need not look them up.

They may be out of date. So the statements that rely on them check them, and their callers count the rows.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from carteiro.model import MessageId

Row: TypeAlias = tuple[Any, ...]

# Columns of a row, the first six those that an entry repeats. STATE: None if nothing had happened to the message.
NO, TENANT, IS_EMAIL, CREATED_AT, DUE_AT, EXPIRES_AT, DECLARES, STATE, TEMPLATE = range(9)
# `claim_load` adds what only a claim needs.
REQUEST, DELIVERY, RECIPIENT = range(9, 12)
# `find_leased` adds who has the job and at which seat, whether lists can write its timeline, who holds its attempt, and
# until when.
SEAT, CLAIM, HAS_ROOM, HOLDER, HELD_UNTIL = range(9, 14)


class Places(NamedTuple):
    """Rows of messages, and by their number the seat of each job, and the next job that its claim has at that seat."""

    rows: Mapping[MessageId, Row]
    seats: Mapping[int, int]
    following: Mapping[int, int | None]


class PlacedClaim(str):
    """The id of a claim with the places of its jobs; equal to one without. One object for all leases of the claim."""

    __slots__ = ("places",)
    places: Places


def stretches(claim: str, numbers: Iterable[int], places: Places) -> list[list[Any]]:
    """Seat, claim, first and last number of rows in `leased`: these jobs, and no other lease of the claim."""
    _, seats, following = places
    claim = str(claim)  # SQLite takes a subclass slowly
    found: list[list[Any]] = []
    expected: dict[int | None, list[Any]] = {}  # by the number that continues it
    for no in sorted(numbers):  # without a call for each
        if no in expected:
            stretch = expected[no]
            stretch[3] = no
        else:
            found.append(stretch := [seats[no], claim, no, no])
        expected[following[no]] = stretch
    return found


def ranges(rows: Iterable[Row]) -> list[list[int]]:
    """Expiry, first and last number of rows in `unfinished`: these messages, and no others."""
    found: list[list[int]] = [[0, 0, 0]]
    for expires_at, no in sorted([(row[EXPIRES_AT], row[NO]) for row in rows]):
        last = found[-1]
        if no == last[2] + 1 and expires_at == last[0]:
            last[2] = no
        else:
            found.append([expires_at, no, no])
    return found[1:]

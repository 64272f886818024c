"""The place of a job: columns that its claim has read, kept with the claim. Declare and settle need not look it up.

A place may be out of date. So the statements that rely on it check it, and their callers count the rows.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

from carteiro.model import MessageId

Place: TypeAlias = tuple[Any, ...]

# Columns of a place. STATE: None if nothing had happened to the message. CLAIM: who has the job. NEXT: the number of
# the next message that the same claim has at the same seat.
SEAT, NO, TENANT, IS_EMAIL, CREATED_AT, DUE_AT, EXPIRES_AT, DECLARES, STATE, TEMPLATE = range(10)
CLAIM, NEXT = 10, 11
# `find_leased` adds whether lists can write its timeline, who holds its attempt, and until when.
HAS_ROOM, HOLDER, HELD_UNTIL = range(12, 15)


class PlacedClaim(str):
    """The id of a claim with the places of its jobs; equal to one without. One object for all leases of the claim."""

    __slots__ = ("places",)
    places: dict[MessageId, Place]


def stretches(places: Iterable[Place]) -> list[tuple[Any, ...]]:
    """Seat, claim, first and last number of rows in `leased`: these places, and no other lease of their claims."""
    found: list[tuple[Any, ...]] = []
    expected = None
    for claim, seat, no, following in sorted(
        [(place[CLAIM], place[SEAT], place[NO], place[NEXT] or 0) for place in places]
    ):
        if no == expected and found[-1][1] == claim:
            found[-1] = (seat, claim, found[-1][2], no)
        else:
            found.append((seat, claim, no, no))
        expected = following
    return found

"""The place of a job: columns that its claim has read, kept with the lease. Declare and settle need not look it up.

A place may be out of date. So the statements that rely on it check it, and their callers count the rows.
"""

from typing import Any, Self

from carteiro.model import ClaimId, Lease, MessageId

# Columns of a place. STATE: None if nothing had happened to the message.
SEAT, NO, TENANT, IS_EMAIL, CREATED_AT, DECLARES, DUE_AT, EXPIRES_AT, STATE, TEMPLATE = range(10)
# `find_leased` adds who has the job, whether lists can write its timeline, who holds its attempt, and until when.
CLAIM, HAS_ROOM, HOLDER, HELD_UNTIL = range(10, 14)


class PlacedLease(Lease):
    """A lease with the place of its job; equal to one without."""

    place: tuple[Any, ...]

    def __new__(cls, job: MessageId, claim: ClaimId, place: tuple[Any, ...]) -> Self:
        """As a tuple makes it: in half the time that `Lease` takes."""
        lease = tuple.__new__(cls, (job, claim))
        lease.place = place
        return lease

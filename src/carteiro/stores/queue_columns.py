"""Between columns and values, the same in every SQL store: where a job is, and how much is in the queue."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from carteiro.model import LATEST, Depth, QueuePlace, SendLimit
from carteiro.policy.lifecycle import MILLISECOND, is_live
from carteiro.policy.pacing import Pace
from carteiro.stores.columns import in_ms, maybe_moment, moment


def place_of(row: Sequence[Any], now: int) -> QueuePlace:
    """Where a job is, out of what `place` reads of it."""
    parked_until, has_claim, claims, wakes_at, in_flight, *limit = row
    is_leased = bool(has_claim) and is_live(parked_until, now)
    is_parked = is_leased or (not has_claim and (parked_until or 0) > now)
    return QueuePlace(
        parked_until=maybe_moment(parked_until if is_parked else None),
        is_claimed=is_leased,
        claims=claims,
        tenant_wakes_at=_still_to_come(wakes_at, now),
        tenant_in_flight=in_flight,
        limited_until=_still_to_come(_limited_until(*limit, now=now), now),
    )


def depth_of(row: Sequence[Any], now: int) -> Depth:
    """How much of one kind there is, out of what `depths` reads of it."""
    kind, unfinished, in_flight, since = row
    return Depth(kind, unfinished, in_flight, None if since is None else moment(min(since, now)))


def _limited_until(count: int | None, per_ms: int, next_us: int, *, now: int) -> int | None:
    """When the send limit of a kind lets the next job go; None if it would now."""
    if count is None:
        return None
    pace = Pace.of(SendLimit(count, per_ms * MILLISECOND))
    return None if pace.tokens(next_us, now * 1000) else -(-pace.wakes_at_us(next_us) // 1000)


def _still_to_come(at: int | None, now: int) -> datetime | None:
    """A moment that lies ahead; what never comes is put off as far as moments go."""
    return None if at is None or at <= now else moment(min(at, in_ms(LATEST)))

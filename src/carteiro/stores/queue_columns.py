"""Conversion between columns and values for every SQL store: the place of a job, and the depth of the queue."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson

from carteiro.model import LATEST, Depth, MessageId, QueuePlace
from carteiro.policy.estimate import MOST_AHEAD
from carteiro.policy.lifecycle import is_live
from carteiro.policy.pacing import Draw, Window
from carteiro.stores.columns import in_ms, maybe_moment, moment


def place_of(row: Sequence[Any], now: int) -> QueuePlace:
    """The place of a job, from the columns of `place`."""
    parked_until, has_claim, claims, wakes_at, in_flight, *limit, ahead, parked_ahead, since = row
    is_leased = bool(has_claim) and is_live(parked_until, now)
    is_parked = is_leased or (not has_claim and (parked_until or 0) > now)
    return QueuePlace(
        parked_until=maybe_moment(parked_until if is_parked else None),
        is_claimed=is_leased,
        claims=claims,
        tenant_wakes_at=_still_to_come(wakes_at, now),
        tenant_in_flight=in_flight,
        limited_until=_still_to_come(_limited_until(*limit, now=now), now),
        ahead=min(ahead, MOST_AHEAD),
        parked_ahead=min(parked_ahead, MOST_AHEAD),
        waits_since=maybe_moment(since if since is not None and since <= now else None),
    )


def depth_of(row: Sequence[Any], now: int) -> Depth:
    """The depth of one kind, from the columns of `depths`."""
    kind, unfinished, in_flight, since = row
    return Depth(kind, unfinished, in_flight, None if since is None else moment(min(since, now)))


def due_of(rows: Sequence[Sequence[Any]], limit: int) -> list[MessageId]:
    """The ids of a tenant's next jobs after the claimed ones, from the columns of `due`."""
    claimed = [identity for is_claimed, _, identity in rows if is_claimed]
    others = sorted((rank, identity) for is_claimed, rank, identity in rows if not is_claimed)
    return [*claimed, *(identity for _, identity in others[:limit])]


def draws_of(text: str) -> list[Draw]:
    """The draws from a send limit, from their stored form."""
    return [Draw(*each) for each in orjson.loads(text)]


def draws_text(draws: Sequence[Draw]) -> str:
    """The stored form of the draws."""
    return orjson.dumps([tuple(each) for each in draws]).decode()


def _limited_until(count: int | None, per_ms: int, draws: str, *, now: int) -> int | None:
    """The time at which the send limit of a kind allows the next job; None: now."""
    if count is None:
        return None
    window, drawn = Window(count, per_ms), draws_of(draws)
    return None if window.left(drawn, now) else window.wakes_at(drawn, now)


def _still_to_come(at: int | None, now: int) -> datetime | None:
    """A future moment; "never" becomes the latest moment that there is."""
    return None if at is None or at <= now else moment(min(at, in_ms(LATEST)))

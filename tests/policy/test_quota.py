"""Admission limits of a tenant, window by window."""

from datetime import UTC, datetime, timedelta

import pytest

from carteiro.model import ApiLimits, OverLimit
from carteiro.policy.quota import QuotaCounts

_NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _tally(at: datetime, count: int) -> QuotaCounts:
    tally = QuotaCounts(_ms(at))
    for _ in range(count):
        tally.count()
    return tally


@pytest.mark.parametrize(
    ("limits", "limit", "resets_at", "window"),
    [
        (ApiLimits(3, None, None), 3, _NOON + timedelta(minutes=1), timedelta(minutes=1)),
        (ApiLimits(3, 3, None), 3, _NOON + timedelta(hours=1), timedelta(hours=1)),
        (ApiLimits(1, 3, 9), 3, _NOON + timedelta(hours=1), timedelta(hours=1)),
        (ApiLimits(3, 9, 2), 2, _NOON + timedelta(hours=12), timedelta(days=1)),
    ],
)
def test_full_window_that_opens_last_is_reported(
    limits: ApiLimits, limit: int, resets_at: datetime, window: timedelta
) -> None:
    """With nothing remaining, and the time to its end."""
    now = _NOON + timedelta(seconds=15)

    assert _tally(now, 3).judge(limits) == OverLimit(limit, 0, resets_at, resets_at - now, window)


@pytest.mark.parametrize("limits", [ApiLimits(None, None, None), ApiLimits(4, 4, 4)])
def test_nothing_is_reported_while_no_window_is_full(limits: ApiLimits) -> None:
    """An unlimited window is never full."""
    assert _tally(_NOON, 3).judge(limits) is None


def test_longest_of_windows_that_end_together_is_reported() -> None:
    """In the last minute of a day all three end at midnight."""
    now = _NOON + timedelta(hours=11, minutes=59, seconds=30)

    told = _tally(now, 3).judge(ApiLimits(3, 2, 1))

    midnight = _NOON + timedelta(hours=12)
    assert told == OverLimit(1, 0, midnight, timedelta(seconds=30), timedelta(days=1))


@pytest.mark.parametrize(
    ("later", "limits", "is_full"),
    [
        (timedelta(seconds=59), ApiLimits(2, None, None), True),
        (timedelta(seconds=60), ApiLimits(2, None, None), False),
        (timedelta(seconds=60), ApiLimits(None, 2, None), True),
        (timedelta(hours=1), ApiLimits(None, 2, None), False),
        (timedelta(hours=1), ApiLimits(None, None, 2), True),
        (timedelta(hours=12), ApiLimits(None, None, 2), False),
    ],
)
def test_stored_counts_are_valid_while_their_window_is_open(
    later: timedelta, limits: ApiLimits, is_full: bool
) -> None:
    """The rows of a store give the same answer as the original tally."""
    kept = _tally(_NOON, 2).rows()

    told = QuotaCounts(_ms(_NOON + later), kept).judge(limits)

    assert (told is not None) == is_full


@pytest.mark.parametrize(
    ("limits", "edge"),
    [
        (ApiLimits(2, None, None), _NOON + timedelta(minutes=1)),
        (ApiLimits(None, 2, None), _NOON + timedelta(hours=1)),
        (ApiLimits(None, None, 2), _NOON + timedelta(hours=12)),
    ],
)
def test_caller_from_before_the_edge_counts_in_the_window_after_it(
    limits: ApiLimits, edge: datetime
) -> None:
    """Its time was read before it waited for the lock: it neither gets a window of its own nor undoes the newer one."""
    late = edge - timedelta(milliseconds=1)
    kept = _tally(edge, 1).rows()

    tally = QuotaCounts(_ms(late), kept)
    charged = tally.charge(2, limits)

    assert charged.counted == 1
    assert charged.over is not None
    assert charged.over.retry_after == charged.over.resets_at - late
    assert [(length, start) for length, start, _ in tally.rows()] == [row[:2] for row in kept]


def test_window_far_ahead_counts_nothing() -> None:
    """It comes from a clock that stepped back, and must not refuse messages until its own end."""
    kept = _tally(_NOON + timedelta(days=2), 2).rows()

    assert QuotaCounts(_ms(_NOON), kept).judge(ApiLimits(2, 2, 2)) is None

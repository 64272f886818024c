"""Wilson's score interval, against known values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.policy.wilson import bounds


@pytest.mark.parametrize(
    ("successes", "cases", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (1, 10, 0.0179, 0.4042),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (0, 50, 0.0, 0.0713),
        (15, 148, 0.0624, 0.1605),  # Newcombe (1998)
        (81, 263, 0.2553, 0.3662),  # Newcombe (1998)
        (0, 380, 0.0, 0.0100),
        (500, 1000, 0.4691, 0.5309),
    ],
)
def test_known_values(successes: int, cases: int, low: float, high: float) -> None:
    """Of the article that compares such intervals, and of tables."""
    assert bounds(successes, cases) == pytest.approx((low, high), abs=0.00006)


def test_nothing_is_known_of_no_cases() -> None:
    """The share may be any."""
    assert bounds(0, 0) == (0, 1)


def test_more_successes_than_cases_are_all_of_them() -> None:
    """Losses that were taken back, on days that are no longer kept, may leave that, which must not raise."""
    assert bounds(2, 1) == bounds(1, 1)


@given(st.integers(1, 10_000), st.data())
def test_share_is_within_its_bounds(cases: int, data: st.DataObject) -> None:
    """They are shares, and mirrored for failures."""
    successes = data.draw(st.integers(0, cases))

    low, high = bounds(successes, cases)
    assert 0 <= low <= successes / cases + 1e-12
    assert successes / cases - 1e-12 <= high <= 1
    assert bounds(cases - successes, cases) == pytest.approx((1 - high, 1 - low))

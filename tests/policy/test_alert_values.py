"""Values of alerts: percentiles and the distance of shares."""

from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.policy.alert_values import delivery_time, distance
from carteiro.policy.rollups import DELAYS

NOW = datetime(2027, 1, 15, 12, tzinfo=UTC)


def test_delays_beyond_the_last_slot_are_at_least_its_start() -> None:
    """They have no upper bound."""
    slow = {NOW: Counter({f"delay.{len(DELAYS)}": 1})}

    assert delivery_time(NOW, slow) == DELAYS[-1] / 1000
    assert delivery_time(NOW, {NOW: Counter()}) is None


def test_share_of_delays_is_found_in_its_slot() -> None:
    """Half of them took less than the middle of the second slot."""
    even = {NOW: Counter({"delay.1": 10})}

    assert delivery_time(NOW, even, 0.5) == (DELAYS[0] + DELAYS[1]) / 2 / 1000


_COUNTS = st.dictionaries(st.sampled_from("ABCD"), st.integers(1, 100), min_size=1).map(Counter)


@given(_COUNTS, _COUNTS)
def test_distance_is_a_distance(one: Counter[str], other: Counter[str]) -> None:
    """Between 0 and 1, the same in both directions, 0 for the same shares."""
    between = distance(one, other)

    assert 0 <= between <= 1 + 1e-9
    assert between == pytest.approx(distance(other, one))
    assert distance(one, Counter({name: 3 * each for name, each in one.items()})) < 1e-9
    assert (one.keys() & other.keys() != set()) or between == pytest.approx(1)

"""The arithmetic of turns, as tables of cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import Fairness
from carteiro.policy.fairness import (
    LEAST_WEIGHT,
    MOST_WEIGHT,
    SCALE,
    priority,
    rescaled,
    rounds_without,
    stride,
)


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (1.0, SCALE),
        (2.0, SCALE // 2),
        (0.5, SCALE * 2),
        (3.0, 333_333),
        (1000.0, 1000),
        (1e9, 1000),
        (0.001, SCALE * 1000),
        (1e-9, SCALE * 1000),
    ],
)
def test_job_costs_less_with_a_higher_weight(weight: float, expected: int) -> None:
    """Virtual time is jobs divided by weight, in whole numbers, with weights bounded on both sides."""
    assert stride(weight) == expected


@pytest.mark.parametrize(
    ("vt", "v", "old", "new", "expected"),
    [
        (16, 10, 2, 1, 13),  # weight doubled: half as far ahead
        (16, 10, 1, 2, 22),  # weight halved: twice as far ahead
        (16, 10, 3, 3, 16),
        (10, 10, 1, 5, 10),  # level with V: nothing to rescale
        (4, 10, 1, 5, 4),  # behind V: it earns no credit
        (11, 10, 3, 1, 10),  # whole numbers, rounded down
    ],
)
def test_change_of_weight_rescales_the_lead_of_a_tenant(
    vt: int, v: int, old: int, new: int, expected: int
) -> None:
    """Its new time is V + (vt - V) · w_old / w_new, where a stride is 1 / weight."""
    assert rescaled(vt, v, old=old, new=new) == expected


@given(
    ahead=st.integers(0, 10**12),
    old=st.floats(LEAST_WEIGHT, MOST_WEIGHT),
    new=st.floats(LEAST_WEIGHT, MOST_WEIGHT),
)
def test_change_of_weight_and_back_gives_no_advantage(ahead: int, old: float, new: float) -> None:
    """Rescaling there and back never leaves a tenant further ahead, nor behind V."""
    there = rescaled(ahead, 0, old=stride(old), new=stride(new))
    back = rescaled(there, 0, old=stride(new), new=stride(old))

    assert 0 <= back <= ahead


@pytest.mark.parametrize(
    ("turn", "last_turn", "seated", "expected"),
    [
        (10, 10, 4, 0),
        (13, 10, 4, 0),  # rounds are floored
        (14, 10, 4, 1),
        (30, 10, 4, 5),
        (30, 10, 1, 20),
        (30, 10, 0, 20),  # an empty ring counts as one
        (5, 10, 4, 0),  # a turn counted by another set of kinds
    ],
)
def test_rounds_are_turns_of_others_divided_by_the_tenants_in_the_ring(
    turn: int, last_turn: int, seated: int, expected: int
) -> None:
    """Whole rounds since the last turn, never negative."""
    assert rounds_without(turn, last_turn, seated) == expected


@pytest.mark.parametrize(
    ("rounds", "expected"), [(0, 5), (1, 4), (2, 3), (3, 2), (4, 1), (5, 1), (100, 1)]
)
def test_priority_rises_with_the_rounds_without_a_turn(rounds: int, expected: int) -> None:
    """The priority is max(1, 5 - rounds)."""
    assert priority(rounds, Fairness()) == expected


@pytest.mark.parametrize(("rounds", "expected"), [(0, 9), (1, 7), (2, 5), (3, 4), (9, 4)])
def test_priority_follows_its_settings(rounds: int, expected: int) -> None:
    """Base, increment and bound are settings."""
    fairness = Fairness(
        round_robin_base_priority=9, priority_increment_per_round=2, max_round_robin_priority=4
    )

    assert priority(rounds, fairness) == expected

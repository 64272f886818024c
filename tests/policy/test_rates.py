"""Call rate of a provider across all processes: tables of cases, and properties."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import Drawn
from carteiro.policy.rates import (
    ANY,
    LONGEST_STAY,
    SLOWEST,
    Rate,
    Stay,
    draw,
    fresh,
    rate_at,
    shown,
    throttled,
)

SECOND_US = 1_000_000
NOW = 1_800_000_000 * SECOND_US
STAY = timedelta(seconds=5)
US = timedelta(microseconds=1)


def a_rate(**facts: object) -> Rate:
    """The record of a provider that may be called ten times a second, unless the facts say otherwise."""
    usual = replace(fresh("ses"), ceiling=10.0, stays={"other": Stay(NOW + SECOND_US)})
    return replace(usual, **facts)  # type: ignore[arg-type]


def drawn_by(
    record: Rate, count: int, now_us: int = NOW, *, process: str = "one", **told: Any
) -> tuple[Drawn, Rate]:
    """The draw of a process."""
    return draw(record, count, now_us, process=process, stay=STAY, **told)


def test_all_calls_are_granted_without_a_ceiling() -> None:
    """Without a delay."""
    drawn, record = drawn_by(fresh("smtp"), 1000)

    assert drawn == Drawn(1000, None, timedelta(0), 1)
    assert rate_at(record, NOW) is None


def test_one_seconds_worth_is_available_at_once_and_then_one_by_one() -> None:
    """An empty draw has the time of the next call."""
    all_of_it, record = drawn_by(fresh("ses"), 100, ceiling=10.0)
    nothing, record = drawn_by(record, 1)
    later, _ = drawn_by(record, 100, NOW + SECOND_US // 2)

    assert (all_of_it.granted, all_of_it.wait) == (10, timedelta(milliseconds=100))
    assert (nothing.granted, nothing.wait) == (0, timedelta(milliseconds=100))
    assert later.granted == 5


def test_remaining_tokens_need_no_wait() -> None:
    drawn, _ = drawn_by(fresh("ses"), 4, ceiling=10.0)

    assert (drawn.granted, drawn.wait) == (4, timedelta(0))


@pytest.mark.parametrize(("others", "granted"), [(0, 10), (1, 5), (2, 4), (50, 1)])
def test_each_process_has_its_share(others: int, granted: int) -> None:
    """Of a second's worth, at least one."""
    record = a_rate(stays={f"other {n}": Stay(NOW + SECOND_US) for n in range(others)})

    drawn, _ = drawn_by(record, 100, ceiling=10.0)

    assert (drawn.granted, drawn.processes) == (granted, others + 1)


def test_process_counts_until_its_stay_ends_or_it_leaves() -> None:
    """One that was killed frees its share by itself."""
    _, record = drawn_by(fresh("ses"), 1, process="killed")
    _, record = drawn_by(record, 1, process="stopped")
    both, record = drawn_by(record, 0)
    _, left = draw(record, 0, NOW, process="stopped", stay=timedelta(0))
    after, _ = drawn_by(left, 0)
    later, _ = drawn_by(left, 0, NOW + STAY // US)

    assert [both.processes, after.processes, later.processes] == [3, 2, 1]


def test_throttling_halves_the_rate_once_a_second() -> None:
    """A burst of such answers counts as one."""
    record = throttled(a_rate(), NOW, going=3.0)
    again = throttled(record, NOW + SECOND_US - 1, going=3.0)
    later = throttled(again, NOW + SECOND_US, going=3.0)

    assert rate_at(record, NOW) == 5.0
    assert again == record
    assert rate_at(later, NOW + SECOND_US) == (5.0 + 0.5) / 2


def test_throttled_provider_is_not_called_at_once() -> None:
    """The bucket is emptied."""
    drawn, _ = drawn_by(throttled(a_rate(), NOW, going=3.0), 10)

    assert (drawn.granted, drawn.wait) == (0, timedelta(milliseconds=200))


def test_rate_climbs_by_a_twentieth_a_second_up_to_its_ceiling() -> None:
    """Slowly: the provider has just said that this is too fast."""
    record = throttled(a_rate(), NOW, going=3.0)

    climb = [rate_at(record, NOW + n * SECOND_US) for n in (0, 1, 2, 9, 10, 100)]

    assert climb == [5.0, 5.5, 6.0, 9.5, 10.0, 10.0]


def test_rate_without_a_ceiling_recovers_and_is_lifted() -> None:
    """It starts at half its speed; free when it was twice as fast without throttling."""
    record = throttled(fresh("smtp"), NOW, going=40.0)

    climb = [rate_at(record, NOW + n * SECOND_US) for n in (0, 1, 10, 29, 30)]

    assert climb == [20.0, 22.0, 40.0, 78.0, None]
    assert drawn_by(record, 500, NOW + 30 * SECOND_US)[1].cut_to is None


def test_rate_never_reaches_zero() -> None:
    """After any number of throttlings."""
    record = a_rate(ceiling=1.0)
    for second in range(10):
        record = throttled(record, NOW + second * SECOND_US, going=1.0)

    assert (rate_at(record, NOW + 9 * SECOND_US) or 0) >= SLOWEST


def test_ceiling_is_the_last_reported_one_and_is_forgotten_with_its_reporters() -> None:
    """A process that does not know one changes none; one that knows that there is none lifts it."""
    record = a_rate()

    assert drawn_by(record, 0)[1].ceiling == 10.0
    assert drawn_by(record, 0, ceiling=20.0)[1].ceiling == 20.0
    assert drawn_by(record, 0, ceiling=ANY)[1].ceiling is None
    assert drawn_by(record, 0, NOW + 2 * SECOND_US)[1].ceiling is None


def test_rate_is_shown_as_of_now() -> None:
    """Also before the next draw."""
    seen = shown(throttled(a_rate(), NOW, going=3.0), NOW + 2 * SECOND_US)

    assert (seen.provider, seen.rate, seen.ceiling, seen.processes) == ("ses", 6.0, 10.0, 0)


def test_clock_that_steps_back_blocks_nothing() -> None:
    """Neither the next token, nor the climb, nor the members."""
    _, record = drawn_by(throttled(a_rate(), NOW, going=3.0), 10)
    back = NOW - 3600 * SECOND_US

    drawn, record = drawn_by(record, 10, back, ceiling=10.0)

    assert (drawn.granted, drawn.rate, drawn.processes) == (5, 5.0, 1)
    assert rate_at(record, back + 10 * SECOND_US) == 10.0


_MOVES = st.lists(
    st.tuples(
        st.integers(0, 2 * SECOND_US),  # time since the one before
        st.sampled_from(["one", "two", "three"]),
        st.integers(0, 50),
        st.booleans(),  # throttled before
    ),
    min_size=1,
    max_size=60,
)


@given(ceiling=st.floats(0.2, 200.0), moves=_MOVES)
def test_total_stays_within_the_rate(
    ceiling: float, moves: list[tuple[int, str, int, bool]]
) -> None:
    """Over any time: no more than the ceiling, and one second's worth ahead."""
    record, now, granted = fresh("ses"), NOW, 0
    for after, process, count, is_throttled in moves:
        now += after
        if is_throttled:
            record = throttled(record, now, going=ceiling)
        drawn, record = drawn_by(record, count, now, process=process, ceiling=ceiling)
        granted += drawn.granted
        assert drawn.rate is not None
        assert min(SLOWEST, ceiling) <= drawn.rate <= ceiling

    seconds = (now - NOW) / SECOND_US
    assert granted <= ceiling * (seconds + 1) * 1.001 + 1


@given(
    rate=st.floats(0.2, 200.0),
    steps=st.lists(
        st.tuples(st.integers(-(10**10), 10**7), st.booleans()), min_size=1, max_size=30
    ),
)
def test_next_call_is_near_with_any_clock(rate: float, steps: list[tuple[int, bool]]) -> None:
    """No wait is longer than that of the slowest rate, and every stay ends."""
    record, now = fresh("ses"), NOW
    for step, is_throttled in steps:
        now += step
        if is_throttled:
            record = throttled(record, now, going=rate)
        drawn, record = drawn_by(record, 10, now, ceiling=rate)
        assert timedelta(0) <= drawn.wait <= timedelta(seconds=1 / min(SLOWEST, rate) + 1)
        latest = now + LONGEST_STAY // US
        assert all(now < stay.until_us <= latest for stay in record.stays.values())

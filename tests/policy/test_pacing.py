"""Rate limits of starts, as tables of cases."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import SendLimit
from carteiro.policy.pacing import MOST_DRAWS, Draw, Pace, Window, stepped_back, undrawn

SECOND_US = 1_000_000
NOW = 1_800_000_000 * SECOND_US


@pytest.mark.parametrize(
    ("rate", "interval_us", "at_once"),
    [
        (1.0, SECOND_US, 1),
        (2.0, 500_000, 2),
        (10.0, 100_000, 10),
        (3.0, 333_333, 3),
        (0.25, 4 * SECOND_US, 1),  # less than one a second: still one at once
        (1.5, 666_667, 1),
        (5e6, 1, SECOND_US),  # finer than a microsecond: one each
    ],
)
def test_rate_allows_one_seconds_worth_at_once(rate: float, interval_us: int, at_once: int) -> None:
    """A full bucket holds a second's worth of tokens, at least one."""
    pace = Pace.per_second(rate)

    assert pace.interval_us == interval_us
    assert pace.tokens(0, NOW) == at_once


def test_drawn_tokens_come_back_one_by_one() -> None:
    """Two a second: an empty bucket has one token after half a second, two after one."""
    pace = Pace.per_second(2.0)
    drawn = pace.drawn(0, NOW, 2)

    tokens = [pace.tokens(drawn, NOW + after) for after in (0, 499_999, 500_000, 1_000_000)]

    assert tokens == [0, 0, 1, 2]
    assert pace.wakes_at_us(drawn) == NOW + 500_000


def test_idle_bucket_does_not_overflow() -> None:
    """After any pause there is one second's worth."""
    pace = Pace.per_second(2.0)

    assert pace.tokens(pace.drawn(0, NOW, 2), NOW + 3600 * SECOND_US) == 2


def test_clock_that_stepped_back_does_not_stop_the_rate() -> None:
    """A record far ahead is a clock error: within one interval there is a token again."""
    pace = Pace.per_second(2.0)
    drawn = pace.drawn(0, NOW, 2)
    yesterday = NOW - 86_400 * SECOND_US

    assert pace.tokens(drawn, yesterday + pace.interval_us) >= 1


@given(
    rate=st.floats(0.01, 1000.0),
    asks=st.lists(st.tuples(st.integers(0, 3 * SECOND_US), st.integers(1, 50)), max_size=40),
)
def test_window_never_holds_more_than_its_share(rate: float, asks: list[tuple[int, int]]) -> None:
    """At any times, at most burst + elapsed time's worth is ever drawn."""
    pace = Pace.per_second(rate)
    now, record, total = NOW, 0, 0
    most_at_once = pace.tokens(0, NOW)
    for wait, wanted in asks:
        now += wait
        drawn = min(wanted, pace.tokens(record, now))
        if drawn:
            record = pace.drawn(record, now, drawn)
            total += drawn

    assert total <= most_at_once + (now - NOW) // pace.interval_us + 1


@given(rate=st.floats(0.01, 1000.0), waits=st.lists(st.integers(0, 3 * SECOND_US), max_size=20))
def test_wake_up_time_is_the_first_moment_with_a_token(rate: float, waits: list[int]) -> None:
    """Not a microsecond earlier, and then for sure."""
    pace = Pace.per_second(rate)
    now, record = NOW, 0
    for wait in waits:
        now += wait
        record = pace.drawn(record, now, pace.tokens(record, now))
        wakes_at = pace.wakes_at_us(record)

        assert pace.tokens(record, wakes_at) == 1
        assert pace.tokens(record, wakes_at - 1) == 0
        now = max(now, wakes_at)


# --- send limits ------------------------------------------------------------------------------

NOW_MS = NOW // 1000


def test_send_limit_allows_its_whole_count_at_once_and_again_after_its_period() -> None:
    """100 in 60 s: all hundred now, none for a minute, then all hundred."""
    window = Window.of(SendLimit(100, timedelta(seconds=60)))
    draws = window.drawn([], NOW_MS, 100, "a")

    assert window.left([], NOW_MS) == 100
    assert [window.left(draws, NOW_MS + after) for after in (0, 59_999, 60_000)] == [0, 0, 100]
    assert window.wakes_at(draws, NOW_MS) == NOW_MS + 60_000


def test_released_jobs_can_be_drawn_again() -> None:
    """The jobs of that claim alone; an empty draw is forgotten."""
    draws = [Draw(1, 2, "a"), Draw(2, 3, "b")]

    assert undrawn(draws, "b", 1) == [Draw(1, 2, "a"), Draw(2, 2, "b")]
    assert undrawn(draws, "a", 2) == [Draw(2, 3, "b")]
    assert undrawn(draws, "c", 1) == draws


def test_draws_in_the_future_count_as_drawn_now() -> None:
    """The clock stepped back: they end after one period."""
    assert stepped_back([Draw(1, 2, "a"), Draw(9, 3, "b")], 5) == [Draw(1, 2, "a"), Draw(5, 3, "b")]


@given(
    count=st.integers(1, 300),
    per_ms=st.integers(1, 5000),
    asks=st.lists(st.tuples(st.integers(0, 900), st.integers(1, 60), st.booleans()), max_size=300),
)
def test_period_never_holds_more_than_the_count(
    count: int, per_ms: int, asks: list[tuple[int, int, bool]]
) -> None:
    """With any draws and releases; the memory is bounded."""
    window = Window(count, per_ms)
    now, draws, kept = NOW_MS, list[Draw](), list[Draw]()
    for number, (wait, wanted, is_given_back) in enumerate(asks):
        now += wait
        jobs, claim = min(wanted, window.left(draws, now)), str(number)
        if not jobs:
            assert window.left(draws, window.wakes_at(draws, now)) > 0
            assert window.left(draws, window.wakes_at(draws, now) - 1) == 0
            continue
        draws = window.drawn(draws, now, jobs, claim)
        kept.append(Draw(now, jobs, claim))
        if is_given_back:
            draws = undrawn(draws, claim, jobs)
            kept.pop()

        assert len(draws) <= min(count, MOST_DRAWS + 1)
        assert sum(each.jobs for each in kept if each.at > now - per_ms) <= count


@pytest.mark.parametrize("count", [1, 100, 101, 1000, 20_000])
def test_backlog_starts_at_the_full_rate(count: int) -> None:
    """Ten workers that draw 5 at a time, each a hundred times as fast as the limit: within a hundredth of it."""
    window = Window(count, 60_000)
    now, draws, started = NOW_MS, list[Draw](), 0
    end = NOW_MS + 20 * window.per_ms
    while now < end:
        jobs = min(50, window.left(draws, now))
        if jobs:
            draws = window.drawn(draws, now, jobs, "a")
            started += jobs
        now = max(now + 1, window.wakes_at(draws, now))

    assert 0.99 * 20 * count <= started <= 20 * count

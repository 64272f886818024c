"""The circuit breaker: opens on consecutive failures alone, probes with one call, and closes by itself."""

from hypothesis import given
from hypothesis import strategies as st

from carteiro.policy.breaker import FIRST_PAUSE_S, LONGEST_PAUSE_S, TRIPS_AFTER, Breaker

EVEN = 0.5  # no jitter


def opened(now: float = 0.0) -> Breaker:
    """A breaker that has just opened."""
    breaker = Breaker()
    for _ in range(TRIPS_AFTER):
        breaker.failed(breaker.begin(now), now, EVEN)
    return breaker


def test_consecutive_failures_open_it() -> None:
    """The last of them reports it."""
    breaker = Breaker()

    told = [breaker.failed(breaker.begin(0), 0, EVEN) for _ in range(TRIPS_AFTER)]

    assert told == [False] * (TRIPS_AFTER - 1) + [True]
    assert breaker.is_open
    assert breaker.wait(0) == FIRST_PAUSE_S


def test_success_in_between_keeps_it_closed() -> None:
    """With any number of failures."""
    breaker = Breaker()
    for _ in range(3 * TRIPS_AFTER):
        for _ in range(TRIPS_AFTER - 1):
            breaker.failed(breaker.begin(0), 0, EVEN)
        breaker.succeeded(breaker.begin(0))

    assert not breaker.is_open
    assert not breaker.is_suspect
    assert breaker.wait(0) == 0


def test_one_probe_at_a_time() -> None:
    """Other calls wait for its result."""
    breaker = opened()
    later = FIRST_PAUSE_S

    first = breaker.wait(later)
    breaker.begin(later)

    assert first == 0
    assert breaker.wait(later) > 0


def test_successful_probe_closes_it() -> None:
    """From then on all calls are made."""
    breaker = opened()

    assert breaker.succeeded(breaker.begin(FIRST_PAUSE_S))
    assert not breaker.is_open
    assert breaker.wait(FIRST_PAUSE_S) == 0


def test_failed_probe_doubles_the_pause_up_to_the_maximum() -> None:
    """A provider that is down for hours is called once a minute."""
    breaker, now, pauses = opened(), 0.0, []
    for _ in range(10):
        now += breaker.wait(now)
        assert breaker.failed(breaker.begin(now), now, EVEN)
        pauses.append(breaker.wait(now))

    assert pauses == [2, 4, 8, 16, 32, *[LONGEST_PAUSE_S] * 5]


def test_pauses_start_again_after_it_closed() -> None:
    breaker = opened()
    now = breaker.wait(0)
    breaker.failed(breaker.begin(now), now, EVEN)
    now += breaker.wait(now)
    breaker.succeeded(breaker.begin(now))

    for _ in range(TRIPS_AFTER):
        breaker.failed(breaker.begin(now), now, EVEN)

    assert breaker.wait(now) == FIRST_PAUSE_S


def test_calls_from_before_it_opened_do_not_count() -> None:
    """Neither does their failure lengthen the pause, nor their success end it."""
    breaker = Breaker()
    began = [breaker.begin(0) for _ in range(TRIPS_AFTER + 2)]
    for each in began[:TRIPS_AFTER]:
        breaker.failed(each, 0, EVEN)

    assert not breaker.failed(began[-2], 0, EVEN)
    assert not breaker.succeeded(began[-1])
    assert breaker.wait(0) == FIRST_PAUSE_S


def test_probe_without_a_result_gives_way_to_another() -> None:
    """Its worker may be gone."""
    breaker = opened()
    breaker.begin(FIRST_PAUSE_S)

    assert breaker.wait(2 * FIRST_PAUSE_S) == 0


def test_probe_that_is_not_made_makes_room_for_another() -> None:
    """At once: nothing was learnt."""
    breaker = opened()
    breaker.begin(FIRST_PAUSE_S)
    breaker.unused(FIRST_PAUSE_S)

    assert breaker.wait(FIRST_PAUSE_S) == 0
    breaker.unused(0)
    assert not Breaker().is_open


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 10), st.floats(0, 1, exclude_max=True))))
def test_call_is_always_allowed_again(calls: list[tuple[bool, float, float]]) -> None:
    """After any events, within the longest pause and its jitter."""
    breaker, now = Breaker(), 0.0
    for is_well, passes, chance in calls:
        now += passes
        if breaker.wait(now) == 0:
            began = breaker.begin(now)
            if is_well:
                breaker.succeeded(began)
            else:
                breaker.failed(began, now, chance)

    assert breaker.wait(now) <= 1.25 * LONGEST_PAUSE_S
    assert breaker.wait(now + 1.25 * LONGEST_PAUSE_S) == 0

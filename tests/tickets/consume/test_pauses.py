"""A type pauses when many of its tickets cannot reach something, and goes on by itself."""

from datetime import timedelta

from carteiro.config import load
from carteiro.policy.breaker import FIRST_PAUSE_S
from carteiro.tickets.consume.pauses import TypeHealth

NO_JITTER = 0.5
SETTINGS = load(environ={}).tickets
TICKETS, WITHIN_S = SETTINGS.pause_tickets, SETTINGS.pause_within.total_seconds()


def fail(health: TypeHealth, id: str, now: float = 0.0) -> bool:
    """One ticket fails."""
    return health.failed(health.breaker.begin(now), now, NO_JITTER, id=id)


def an_outage() -> TypeHealth:
    """A type whose tickets have all failed."""
    health = TypeHealth(SETTINGS)
    began = [fail(health, f"t{each}") for each in range(TICKETS)]
    assert began == [False] * (TICKETS - 1) + [True]
    return health


def test_many_different_tickets_that_fail_are_an_outage() -> None:
    """The last of them begins it, and a pause."""
    health = an_outage()
    assert health.breaker.is_open
    assert health.breaker.wait(0.0) == FIRST_PAUSE_S


def test_one_ticket_that_fails_again_and_again_is_none() -> None:
    """It is ill itself, however often it is tried."""
    health = TypeHealth(SETTINGS)
    assert not any(fail(health, "poison") for _ in range(200))


def test_a_few_among_many_that_succeed_are_none() -> None:
    """A third of failures does not make an outage."""
    health = TypeHealth(SETTINGS)
    for each in range(500):
        health.succeeded([health.breaker.begin(0.0)], 0.0)
        health.succeeded([health.breaker.begin(0.0)], 0.0)
        assert not fail(health, f"t{each}")


def test_failures_of_long_ago_say_nothing() -> None:
    """Only the last minute counts."""
    health = TypeHealth(SETTINGS)
    for each in range(TICKETS - 1):
        fail(health, f"t{each}", now=0.0)
    assert not fail(health, "late", now=WITHIN_S)


def test_after_the_pause_one_is_tried_and_its_failure_makes_the_next_pause_longer() -> None:
    """Trials come one at a time, and ever more rarely."""
    health = an_outage()
    now = FIRST_PAUSE_S
    assert health.breaker.wait(now) == 0.0
    began = health.breaker.begin(now)
    assert health.breaker.wait(now) > 0  # one at a time
    assert not health.failed(began, now, NO_JITTER, id="probe")
    assert health.breaker.wait(now) == 2 * FIRST_PAUSE_S


def test_success_ends_the_pause_and_clears_the_failures() -> None:
    """The next failure is a first one."""
    health = an_outage()
    assert health.succeeded([health.breaker.begin(FIRST_PAUSE_S)], FIRST_PAUSE_S)
    assert not health.breaker.is_open
    assert not fail(health, "another", now=FIRST_PAUSE_S)


def test_a_success_that_was_begun_before_the_outage_does_not_end_it() -> None:
    """It says how things were."""
    health = TypeHealth(SETTINGS)
    early = health.breaker.begin(0.0)
    for each in range(TICKETS):
        fail(health, f"t{each}")
    assert not health.succeeded([early], 0.0)
    assert health.breaker.is_open


def test_revoked_trial_makes_room_for_another() -> None:
    """Its partition went to another worker."""
    health = an_outage()
    health.breaker.begin(FIRST_PAUSE_S)
    health.breaker.unused(FIRST_PAUSE_S)
    assert health.breaker.wait(FIRST_PAUSE_S) == 0.0


def test_a_pause_that_was_given_up_is_not_begun_again_before_a_success() -> None:
    """Or its end would be none."""
    health = an_outage()
    health.give_up()
    assert not health.breaker.is_open
    assert not any(fail(health, f"u{each}") for each in range(5 * TICKETS))

    health.succeeded([health.breaker.begin(0.0)], 0.0)
    assert any(fail(health, f"v{each}") for each in range(5 * TICKETS))


def test_thresholds_are_those_of_the_settings() -> None:
    """Few tickets, a large share, a short while."""
    health = TypeHealth(
        SETTINGS.model_copy(
            update={"pause_tickets": 2, "pause_share": 1.0, "pause_within": timedelta(seconds=5)}
        )
    )
    health.succeeded([health.breaker.begin(0.0)], 0.0)
    assert not fail(health, "a")
    assert not fail(health, "b")  # two of three
    assert not fail(health, "c", now=6.0)
    assert fail(health, "d", now=6.0)


def test_switched_off_nothing_pauses_and_nothing_is_remembered() -> None:
    """Whatever fails."""
    settings = load(environ={}, overrides={"tickets.pause": False}).tickets
    health = TypeHealth(settings)
    assert not any(fail(health, f"t{each}") for each in range(100))
    assert health.is_perfect

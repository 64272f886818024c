"""An outage is told from tickets that are ill themselves, costs them nothing, and ends by itself."""

from carteiro.policy.breaker import FIRST_PAUSE_S
from carteiro.tickets.health import FEWEST_FAILED, MEMORY_S, Health

NO_JITTER = 0.5


def fail(health: Health, id: str, now: float = 0.0) -> bool:
    """One ticket fails."""
    return health.failed(health.begin(now), now, NO_JITTER, id=id)


def an_outage() -> Health:
    """A type whose tickets have all failed."""
    health = Health()
    began = [fail(health, f"t{each}") for each in range(FEWEST_FAILED)]
    assert began == [False] * (FEWEST_FAILED - 1) + [True]
    return health


def test_many_different_tickets_that_fail_are_an_outage() -> None:
    """The last of them begins it, and a pause."""
    health = an_outage()
    assert health.is_out
    assert health.wait(0.0) == FIRST_PAUSE_S


def test_one_ticket_that_fails_again_and_again_is_none() -> None:
    """It is ill itself, however often it is tried."""
    health = Health()
    assert not any(fail(health, "poison") for _ in range(200))


def test_a_few_among_many_that_succeed_are_none() -> None:
    """A third of failures is no outage."""
    health = Health()
    for each in range(500):
        health.succeeded(health.begin(0.0), 0.0)
        health.succeeded(health.begin(0.0), 0.0)
        assert not fail(health, f"t{each}")


def test_failures_of_long_ago_say_nothing() -> None:
    """Only the last minute counts."""
    health = Health()
    for each in range(FEWEST_FAILED - 1):
        fail(health, f"t{each}", now=0.0)
    assert not fail(health, "late", now=MEMORY_S)


def test_after_the_pause_one_is_tried_and_its_failure_makes_the_next_pause_longer() -> None:
    """Trials come one at a time, and ever more rarely."""
    health = an_outage()
    now = FIRST_PAUSE_S
    assert health.wait(now) == 0.0
    began = health.begin(now)
    assert health.wait(now) > 0  # one at a time
    assert not health.failed(began, now, NO_JITTER, id="probe")
    assert health.wait(now) == 2 * FIRST_PAUSE_S


def test_a_success_ends_it_and_what_was_before_is_forgotten() -> None:
    """The next failure is a first one."""
    health = an_outage()
    assert health.succeeded(health.begin(FIRST_PAUSE_S), FIRST_PAUSE_S)
    assert not health.is_out
    assert not fail(health, "another", now=FIRST_PAUSE_S)


def test_a_success_that_was_begun_before_the_outage_does_not_end_it() -> None:
    """It says how things were."""
    health = Health()
    early = health.begin(0.0)
    for each in range(FEWEST_FAILED):
        fail(health, f"t{each}")
    assert not health.succeeded(early, 0.0)
    assert health.is_out


def test_a_trial_that_is_taken_away_makes_room_for_another() -> None:
    """Its partition went to another worker."""
    health = an_outage()
    health.begin(FIRST_PAUSE_S)
    health.unused(FIRST_PAUSE_S)
    assert health.wait(FIRST_PAUSE_S) == 0.0

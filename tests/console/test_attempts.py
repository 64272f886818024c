"""Attempts to sign in: bounded for each address, and nobody can lock out others."""

import pytest

from carteiro.api.refusal import Refusal
from carteiro.console.attempts import MOST_OF_ALL, MOST_OF_ONE, Attempts


class Clock:
    """A time that stands."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_address_may_fail_a_few_times_a_minute() -> None:
    """Then it waits for the rest of the minute; others do not."""
    clock = Clock()
    attempts = Attempts(clock=clock)
    for _ in range(MOST_OF_ONE):
        attempts.check("a")
        attempts.failed("a")

    with pytest.raises(Refusal) as refused:
        attempts.check("a")
    attempts.check("b")
    clock.now += 60
    attempts.check("a")

    assert refused.value.status == 429


def test_many_addresses_together_leave_one_attempt_to_each_other() -> None:
    """So somebody with the right token gets in, whatever others do."""
    attempts = Attempts(clock=Clock())
    for number in range(MOST_OF_ALL):
        attempts.failed(number)

    attempts.check("new")
    attempts.failed("new")
    for known in ("new", 0):
        with pytest.raises(Refusal):
            attempts.check(known)

"""Leases that cannot have expired yet, by the clock of this process."""

import time

import pytest

from carteiro.stores.redis.sure import SureLeases
from support.builders import a_claim_id
from support.clock import MILLISECOND, StoreClock

LEASE_MS = 30_000
MINE, ANOTHER = a_claim_id(), a_claim_id()


def _sure(clock: StoreClock) -> SureLeases:
    sure = SureLeases(clock)
    sure.seen(clock.now_ms, at=clock.now_ms)
    sure.leased(MINE, sure.now(), LEASE_MS)
    return sure


def test_claim_is_sure_for_half_of_its_lease() -> None:
    """The other half is for a clock that differs, and for the way of the answer."""
    clock = StoreClock()
    sure = _sure(clock)

    clock.advance((LEASE_MS // 2 - 1) * MILLISECOND)
    before = sure.has(MINE)
    clock.advance(1 * MILLISECOND)

    assert (before, sure.has(MINE), sure.has(ANOTHER)) == (True, False, False)


def test_nothing_is_sure_after_a_release_or_a_step_of_a_clock() -> None:
    """Others may have the jobs, although the lease has not ended."""
    clock = StoreClock()
    released, stepped_back, server_stepped = _sure(clock), _sure(clock), _sure(clock)

    released.forget([MINE])
    server_stepped.seen(clock.now_ms + 60_000, at=clock.now_ms)
    clock.back(1 * MILLISECOND)

    assert not any(each.has(MINE) for each in (released, stepped_back, server_stepped))


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="only Linux counts that time")
def test_nothing_is_sure_after_the_machine_was_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has not noticed it, and Redis has given its jobs to others."""
    sure = SureLeases(None)
    sure.leased(MINE, sure.now(), LEASE_MS)
    before = sure.has(MINE)
    woken = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + LEASE_MS * 1_000_000
    monkeypatch.setattr(time, "clock_gettime_ns", {time.CLOCK_BOOTTIME: woken}.__getitem__)

    assert (before, sure.has(MINE)) == (True, False)


def test_small_difference_of_an_answer_is_not_a_step() -> None:
    """An answer takes its time."""
    clock = StoreClock()
    sure = _sure(clock)

    sure.seen(clock.now_ms + 900, at=clock.now_ms)

    assert sure.has(MINE)


def test_few_claims_are_remembered() -> None:
    """Those that ended are forgotten first."""
    clock = StoreClock()
    sure = _sure(clock)
    clock.advance(LEASE_MS * MILLISECOND)

    for _ in range(10_000):
        sure.leased(a_claim_id(), sure.now(), LEASE_MS)

    assert len(sure._until) <= 10_000
    assert not sure.has(MINE)

"""Alerts, coalesced: new dead letters are one notice per interval."""

from datetime import timedelta
from itertools import pairwise

import pytest

from carteiro.model import TenantId
from carteiro.model.alerts import DEAD_LETTERS, DeadCount, Notice
from carteiro.ports import Backend
from support.alerting import MINUTE
from support.builders import ACME, BRASA, dead, messages
from support.clock import StoreClock
from support.steps import accepted, attempted

SYSTEM = TenantId("system")


async def _noted(backend: Backend, every: timedelta = 15 * MINUTE) -> Notice | None:
    return await backend.alerts.note_dead_letters(every=every, but=SYSTEM)


async def _died(backend: Backend, tenant: str, number: int = 1) -> None:
    for message in messages(number, tenant):
        await accepted(backend.store, message)
        await attempted(backend.store, dead())


async def test_dead_letters_of_an_interval_are_one_notice(
    backend: Backend, clock: StoreClock
) -> None:
    """With counts by tenant and code; those before the first call are not new."""
    await _died(backend, ACME)
    clock.advance(2 * MINUTE)
    begun = await _noted(backend)
    await _died(backend, ACME, 2)
    await _died(backend, BRASA)
    clock.advance(5 * MINUTE)
    too_soon = await _noted(backend)
    clock.advance(10 * MINUTE)
    notice = await _noted(backend)
    clock.advance(15 * MINUTE)

    assert (begun, too_soon) == (None, None)
    assert notice is not None
    code = dead().failure.code
    assert notice.counts == (DeadCount(ACME, code, 2), DeadCount(BRASA, code, 1))
    assert notice.value == 3
    assert await _noted(backend) is None
    assert [each.notice for each in await backend.alerts.waiting()] == [notice]


@pytest.mark.parametrize("seconds", [30, 60, 120])
async def test_burst_is_one_notice_in_each_interval(
    backend: Backend, clock: StoreClock, seconds: int
) -> None:
    """Also if the interval is shorter than the time until dead letters are counted."""
    every = timedelta(seconds=seconds)
    await _noted(backend, every)
    notices = []
    for _ in range(16):
        await _died(backend, ACME)
        clock.advance(timedelta(seconds=15))
        notices.append(await _noted(backend, every))
    clock.advance(MINUTE + every)
    notices.append(await _noted(backend, every))

    told = [each for each in notices if each is not None]
    lengths = {after.at - before.at for before, after in pairwise(told[:-1])}
    assert lengths == {every}
    assert sum(each.value for each in told) == 16


async def test_young_dead_letter_is_counted_the_next_time(
    backend: Backend, clock: StoreClock
) -> None:
    """Its transaction began before and may end after the count: nothing is left out, nothing counted twice."""
    await _noted(backend)
    clock.advance(15 * MINUTE)
    await _died(backend, ACME)
    first = await _noted(backend)
    clock.advance(15 * MINUTE)
    second = await _noted(backend)

    assert first is None
    assert second is not None
    assert second.value == 1


async def test_clock_that_was_ahead_hides_no_later_dead_letter(
    backend: Backend, clock: StoreClock
) -> None:
    """The count goes on from now."""
    clock.advance(1440 * MINUTE)
    await _noted(backend)
    clock.back(1440 * MINUTE)
    corrected = await _noted(backend)
    await _died(backend, ACME)
    clock.advance(15 * MINUTE)
    notice = await _noted(backend)

    assert corrected is None
    assert notice is not None
    assert notice.value == 1


async def test_mails_of_the_system_do_not_count(backend: Backend, clock: StoreClock) -> None:
    """A notice about a dead notice would be a loop."""
    await backend.tenants.ensure([SYSTEM])
    await _noted(backend)
    await _died(backend, SYSTEM)
    clock.advance(16 * MINUTE)

    assert await _noted(backend) is None


async def test_dead_letters_can_be_silenced(backend: Backend, clock: StoreClock) -> None:
    await _noted(backend)
    await _died(backend, ACME)
    clock.advance(16 * MINUTE)
    await backend.alerts.silence(
        DEAD_LETTERS, "", TenantId(""), lasts=MINUTE, reason="a provider is down"
    )

    assert await _noted(backend) is None
    assert await backend.alerts.waiting() == []

"""Alerts, delivered: a notice stays, under one id, until each channel has it or it is given up."""

import asyncio
from datetime import timedelta

from carteiro.ports import Backend
from support.alerting import MINUTE, RULES, full, moved, often
from support.clock import StoreClock
from support.set_ups import Place

BOTH = ("log", "webhook")


async def _due(backend: Backend, *channels: str) -> list[tuple[str, str]]:
    await backend.alerts.spread(channels)
    due = [each for name in channels for each in await backend.alerts.due(name, limit=9)]
    return [(each.channel, each.notice.id) for each in due]


async def test_each_channel_gets_the_notice(backend: Backend) -> None:
    """Until it has it: a channel does not wait for another one."""
    [notice] = await backend.alerts.move([full()], RULES)
    first = await _due(backend, *BOTH)
    await backend.alerts.delivered(notice.id, "log")

    assert sorted(first) == [(each, notice.id) for each in BOTH]
    assert await _due(backend, *BOTH) == [("webhook", notice.id)]
    assert await backend.alerts.spread(BOTH)
    await backend.alerts.delivered(notice.id, "webhook")
    assert not await backend.alerts.spread(BOTH)
    assert await backend.alerts.waiting() == []


async def test_failed_notice_comes_again_after_its_wait(
    backend: Backend, clock: StoreClock
) -> None:
    """With the number of tries and the last error, which people can see."""
    [notice] = await backend.alerts.move([full()], RULES)
    await _due(backend, *BOTH)
    for error in ("no answer", "it answers 500"):
        await backend.alerts.put_off(notice.id, "webhook", wait=MINUTE, error=error)

    assert await _due(backend, "webhook") == []
    assert await _due(backend, "log") == [("log", notice.id)]
    clock.advance(MINUTE)
    [due] = await backend.alerts.due("webhook", limit=9)
    assert (due.tries, due.error, due.notice) == (2, "it answers 500", notice)


async def test_notice_put_off_while_the_clock_was_ahead_comes_again(
    backend: Backend, clock: StoreClock
) -> None:
    """At once: no wait is that long."""
    [notice] = await backend.alerts.move([full()], RULES)
    await backend.alerts.spread(BOTH)
    clock.advance(1440 * MINUTE)
    await backend.alerts.put_off(notice.id, "webhook", wait=MINUTE, error="no answer")
    clock.back(1440 * MINUTE)

    assert await _due(backend, "webhook") == [("webhook", notice.id)]


async def test_notices_come_in_order(backend: Backend, clock: StoreClock) -> None:
    """The oldest first, as many as asked for."""
    [first] = await backend.alerts.move([full()], RULES)
    clock.advance(MINUTE)
    [second] = await backend.alerts.move([full(), often()], RULES)

    assert await _due(backend, "log") == [("log", first.id), ("log", second.id)]
    [oldest] = await backend.alerts.due("log", limit=1)
    assert oldest.notice == first


async def test_loops_at_once_give_each_channel_one_notice(place: Place) -> None:
    """Two processes may lead for a moment."""
    async with place.opened() as one, place.opened() as other:
        await moved(one, full())
        await asyncio.gather(*[each.alerts.spread(BOTH) for each in (one, other) * 4])

        assert sorted(each.channel for each in await one.alerts.waiting()) == ["log", "webhook"]


async def test_new_channel_gets_new_notices_alone(backend: Backend) -> None:
    """A notice goes to the channels that there are when it is first seen."""
    await moved(backend, full())
    await _due(backend, "log")

    assert await _due(backend, "webhook") == []


async def test_notices_of_a_removed_channel_end(backend: Backend, clock: StoreClock) -> None:
    """Nobody will ever ask for them."""
    await moved(backend, full())
    await _due(backend, "gone")
    clock.advance(timedelta(days=3))
    await _due(backend, "log")

    assert await backend.alerts.waiting() == []

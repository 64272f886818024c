"""Upkeep, led: at most one holder leads a task at any moment; the lead of one that vanished passes on."""

import asyncio
from datetime import timedelta

from carteiro.maintenance.watch import EVALUATION, SENDING
from carteiro.ports import Backend
from support.clock import MILLISECOND, StoreClock
from support.set_ups import Place

TERM = timedelta(seconds=30)


async def _leads(backend: Backend, holder: str, *, name: str = "expire") -> bool:
    return await backend.upkeep.lead(name, holder=holder, term=TERM)


async def test_one_leads_and_the_others_wait(backend: Backend, clock: StoreClock) -> None:
    """The first leads until its term ends, to the last millisecond."""
    first = await _leads(backend, "one")
    others = [await _leads(backend, "two"), await _leads(backend, "three")]
    clock.advance(TERM - MILLISECOND)
    still = await _leads(backend, "two")
    clock.advance(MILLISECOND)
    passed_on = await _leads(backend, "two")

    assert first
    assert others == [False, False]
    assert not still
    assert passed_on


async def test_leader_that_renews_leads_on(backend: Backend, clock: StoreClock) -> None:
    """Each renewal is a whole term from now."""
    for _ in range(5):
        assert await _leads(backend, "one")
        clock.advance(TERM / 2)

    assert not await _leads(backend, "two")


async def test_leader_that_lost_the_lead_waits_like_the_others(
    backend: Backend, clock: StoreClock
) -> None:
    await _leads(backend, "one")
    clock.advance(TERM)
    await _leads(backend, "two")

    assert not await _leads(backend, "one")


async def test_tasks_are_led_separately(backend: Backend) -> None:
    """The lead of one task does not affect another."""
    assert await _leads(backend, "one", name="expire")
    assert await _leads(backend, "two", name="prune")
    assert not await _leads(backend, "two", name="expire")


async def test_one_of_many_concurrent_candidates_leads(backend: Backend) -> None:
    """There is no moment between looking and taking."""
    answers = await asyncio.gather(*(_leads(backend, f"holder-{n}") for n in range(10)))

    assert sum(answers) == 1


async def test_lead_from_the_future_counts_as_expired(backend: Backend, clock: StoreClock) -> None:
    """The clock stepped back: a leader that vanished before it must not block its task for a day."""
    await _leads(backend, "one")

    clock.back(timedelta(days=1))

    assert await _leads(backend, "two")
    assert not await _leads(backend, "one")


async def test_live_lead_is_not_taken_with_a_shorter_term(
    backend: Backend, clock: StoreClock
) -> None:
    """A one-shot process asks for a second while a worker leads for many."""
    await _leads(backend, "worker")
    at_once = await backend.upkeep.lead("expire", holder="cron", term=timedelta(seconds=1))
    clock.advance(TERM - MILLISECOND)
    at_the_end = await backend.upkeep.lead("expire", holder="cron", term=timedelta(seconds=1))

    assert not at_once
    assert not at_the_end


async def test_lead_taken_since_the_clock_was_read_stays(
    backend: Backend, clock: StoreClock
) -> None:
    """A candidate reads the time, waits for the other's write, and is then a little behind: no clock stepped back."""
    await _leads(backend, "one")

    clock.back(MILLISECOND)

    assert not await _leads(backend, "two")


async def test_lead_is_seen_by_every_opener(place: Place) -> None:
    """One leader among all processes, not one in each."""
    async with place.opened() as one, place.opened() as other:
        assert await _leads(one, "one")
        assert not await _leads(other, "two")


async def test_time_of_the_last_lead_is_known(backend: Backend, clock: StoreClock) -> None:
    """For any task and term; a refused candidate does not count."""
    never = await backend.upkeep.last_seen()
    await _leads(backend, "one", name="prune")
    first = await backend.upkeep.last_seen()
    clock.advance(MILLISECOND)
    await _leads(backend, "two", name="prune")
    refused = await backend.upkeep.last_seen()
    await _leads(backend, "two")
    second = await backend.upkeep.last_seen()

    assert never is None
    assert first is not None
    assert (refused, second) == (first, first + MILLISECOND)


async def test_leads_of_alerts_are_no_sign_of_upkeep(backend: Backend) -> None:
    """Processes without upkeep evaluate alerts and send notices, too: they must not hide that upkeep is silent."""
    await _leads(backend, "one", name=EVALUATION)
    await _leads(backend, "one", name=SENDING)

    assert await backend.upkeep.last_seen() is None

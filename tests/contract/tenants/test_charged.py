"""Tenants, charged: a refused message counts against the same limits as an accepted one, and leaves nothing else."""

import asyncio
from datetime import timedelta

from carteiro.model import EMAIL, Accepted, ApiLimits, Charged, OverLimit, TenantId
from carteiro.ports import Backend
from support.builders import ACME, BRASA, messages
from support.clock import MILLISECOND, StoreClock
from support.set_ups import Place

FIVE = ApiLimits(5, None, None)
ANY = ApiLimits(None, None, None)
MINUTE = timedelta(minutes=1)


async def test_refused_messages_leave_less_for_accepted_ones(backend: Backend) -> None:
    """Three refused of five: two more are accepted; another tenant is not affected."""
    charged = await backend.tenants.charge(ACME, 3, limits=FIVE)

    answers = await backend.store.accept(messages(3, limits=FIVE))
    theirs = await backend.store.accept(messages(5, BRASA, limits=FIVE))

    assert charged == Charged(3)
    assert [isinstance(each, Accepted) for each in answers] == [True, True, False]
    assert all(isinstance(each, Accepted) for each in theirs)


async def test_count_never_exceeds_the_limit(backend: Backend, clock: StoreClock) -> None:
    """The rest is over the limit, as an accepted message would be; the next window is empty again."""
    await backend.store.accept(messages(2, limits=FIVE))

    charged = await backend.tenants.charge(ACME, 10, limits=FIVE)
    again = await backend.tenants.charge(ACME, 1, limits=FIVE)
    [refused] = await backend.store.accept(messages(1, limits=FIVE))
    clock.advance(MINUTE)
    after = await backend.tenants.charge(ACME, 1, limits=FIVE)

    assert (charged.counted, again.counted) == (3, 0)
    assert isinstance(refused, OverLimit)
    assert charged.over == again.over == refused
    assert after == Charged(1)


async def test_caller_from_before_the_edge_gets_no_window_of_its_own(
    backend: Backend, clock: StoreClock
) -> None:
    """A time read before the edge, counted after it: the newer window stays, and is not counted twice."""
    assert clock.at().second == 0
    charged = await backend.tenants.charge(ACME, 4, limits=FIVE)
    clock.back(MILLISECOND)
    late = await backend.tenants.charge(ACME, 2, limits=FIVE)
    [refused] = await backend.store.accept(messages(1, limits=FIVE))
    clock.advance(MILLISECOND)
    after = await backend.tenants.charge(ACME, 1, limits=FIVE)

    assert (charged.counted, late.counted, after.counted) == (4, 1, 0)
    assert isinstance(refused, OverLimit)


async def test_nothing_else_of_a_refused_message_is_kept(backend: Backend) -> None:
    """No message, no job, no new tenant."""
    unknown = TenantId("nobody")

    await backend.tenants.charge(ACME, 5, limits=FIVE)
    of_nobody = await backend.tenants.charge(unknown, 5, limits=FIVE)
    without_limits = await backend.tenants.charge(BRASA, 5, limits=ANY)

    assert of_nobody == without_limits == Charged(0)
    assert await backend.reading.states() == {}
    assert await backend.tenants.find([unknown]) == [None]
    assert [each for each in await backend.tenants.standings(EMAIL) if each.waiting] == []


async def test_limit_holds_over_all_processes(place: Place) -> None:
    """Accepted and refused, from two openers at once: never more than the limit together."""
    async with place.opened() as first, place.opened() as second:
        charges = [each.tenants.charge(ACME, 2, limits=FIVE) for each in (first, second, first)]
        accepts = [each.store.accept(messages(1, limits=FIVE)) for each in (second, first, second)]
        counted = sum(each.counted for each in await asyncio.gather(*charges))
        accepted = sum(isinstance(each, Accepted) for [each] in await asyncio.gather(*accepts))

        assert counted + accepted == 5

"""Automatic redrives, fair: tenants take turns, and nobody's redrives hold up those of others."""

import asyncio

from carteiro.model import DeadFilter, Ramp, Redrive, RedriveState, TenantId
from carteiro.ports import Backend
from support.builders import ACME, BRASA, tenants_named
from support.clock import StoreClock
from support.recovering import COOL_DOWN, lost, ripe, start, started
from support.redriving import advanced, put_into


async def test_tenant_has_one_at_a_time(backend: Backend, clock: StoreClock) -> None:
    """Of whatever provider, and also if two processes start it at the same moment."""
    for provider in ("smtp", "ses"):
        await lost(backend, provider=provider)
        await lost(backend, BRASA, provider=provider)
    clock.advance(COOL_DOWN)

    answers = await asyncio.gather(*(start(backend) for _ in range(3)))

    [redrive] = [each for each in answers if each is not None]
    assert await start(backend, provider="ses") is None
    assert (await ripe(backend), await ripe(backend, "ses")) == ([BRASA], [BRASA])
    await put_into(backend, redrive, RedriveState.CANCELLED)
    for _ in range(2):
        await advanced(backend)
    assert await start(backend, provider="ses") is not None


async def test_tenants_come_by_name_after_the_last_one(backend: Backend, clock: StoreClock) -> None:
    """A page of them at a time."""
    names = [f"t-{number}" for number in range(5)]
    await backend.tenants.define(tenants_named(names))
    for each in names:
        await lost(backend, each)
    clock.advance(COOL_DOWN)

    assert await ripe(backend, limit=2) == names[:2]
    assert await ripe(backend, limit=2, after=names[1]) == names[2:4]
    assert await ripe(backend, after=names[4]) == []


async def test_number_of_running_ones_is_limited(backend: Backend, clock: StoreClock) -> None:
    """Those of people have limits of their own, on both sides; a stopped one needs no place."""
    names = [f"t-{number:03}" for number in range(101)]
    await backend.tenants.define(tenants_named(names))
    for each in (*names, ACME):
        await lost(backend, each)
    clock.advance(COOL_DOWN)
    for _ in range(5):
        made = await backend.redrives.start(
            DeadFilter(tenant=TenantId(ACME)), by="ana", ramp=Ramp(), total=0
        )
        assert isinstance(made, Redrive)
    running = [await started(backend, each) for each in (ACME, *names[:99])]

    assert await ripe(backend) == []
    assert await start(backend, names[99]) is None
    by_hand = await backend.redrives.start(
        DeadFilter(tenant=TenantId(names[0])), by="ana", ramp=Ramp(), total=0
    )
    assert isinstance(by_hand, Redrive)
    await put_into(backend, running[5], RedriveState.PAUSED)
    assert await ripe(backend) == [names[99]]
    assert await start(backend, names[99]) is not None

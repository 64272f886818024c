"""Redrives, bounded: limited in number, for each tenant and in total; ended ones keep no messages."""

import asyncio
from datetime import timedelta
from typing import Any

from carteiro.model import (
    DeadFilter,
    Ramp,
    Redrive,
    RedriveState,
    TenantId,
    TooManyRedrives,
)
from carteiro.ports import Backend
from support.builders import ACME, tenants_named
from support.builders import sent as was_sent
from support.burying import buried
from support.clock import StoreClock
from support.redriving import advanced, put_into, shown, started, worked

HOUR = timedelta(hours=1)


async def start(backend: Backend, tenant: str | None = None) -> Redrive | TooManyRedrives:
    """A redrive, or the refusal of one."""
    wanted = DeadFilter(tenant=None if tenant is None else TenantId(tenant))
    return await backend.redrives.start(wanted, by="ana", ramp=Ramp(), total=0)


async def test_tenant_has_few_open_redrives(backend: Backend) -> None:
    """Also if they are started at the same moment; paused and stopped ones are open."""
    answers = await asyncio.gather(*(start(backend, ACME) for _ in range(7)))

    made = [each for each in answers if isinstance(each, Redrive)]
    assert len(made) == 5
    assert answers.count(TooManyRedrives(5, of_tenant=True)) == 2
    assert isinstance(await start(backend), Redrive)
    await put_into(backend, made[0], RedriveState.PAUSED)
    assert isinstance(await start(backend, ACME), TooManyRedrives)
    await put_into(backend, made[0], RedriveState.CANCELLED)
    assert isinstance(await start(backend, ACME), Redrive)


async def test_installation_has_a_limited_number_of_open_redrives(backend: Backend) -> None:
    """Of all tenants together."""
    names = [f"tenant-{number}" for number in range(21)]
    await backend.tenants.define(tenants_named(names))
    answers = [await start(backend, name) for name in names for _ in range(5)]

    assert answers[:100].count(TooManyRedrives(100, of_tenant=False)) == 0
    assert answers[100:] == [TooManyRedrives(100, of_tenant=False)] * 5
    assert isinstance(await start(backend), Redrive)  # no tenant keeps an operator from it


async def test_ended_redrive_forgets_its_messages(backend: Backend, clock: StoreClock) -> None:
    """Its numbers stay."""
    for _ in range(3):
        await buried(backend)
    clock.advance(HOUR)
    redrive = await started(backend)
    await advanced(backend)
    await worked(backend, was_sent())
    await advanced(backend)
    ended = await shown(backend, redrive)
    assert ended.state is RedriveState.FINISHED

    assert await backend.redrives.forget(ended, limit=2)
    assert not await backend.redrives.forget(ended, limit=2)

    assert await backend.redrives.due() == []
    assert (await shown(backend, redrive)).course == ended.course


async def test_last_ended_redrives_are_kept(backend: Backend, clock: StoreClock) -> None:
    """Of each tenant; open ones stay."""
    first = await started(backend, tenant=ACME)
    other = await started(backend)
    for _ in range(103):
        clock.advance(timedelta(seconds=1))
        redrive = await started(backend, tenant=ACME)
        await put_into(backend, redrive, RedriveState.CANCELLED)
        await backend.redrives.forget(redrive, limit=10)

    page = await backend.redrives.list(tenant=ACME, limit=200)

    assert len(page.rows) == 101
    assert page.rows[0] == await shown(backend, redrive)
    assert page.rows[-1] == first
    assert await shown(backend, other) == other


async def test_abandoned_redrive_is_cancelled(backend: Backend, clock: StoreClock) -> None:
    """It would keep its messages for ever."""
    redrive = await started(backend)
    await put_into(backend, redrive, RedriveState.PAUSED)
    await advanced(backend)
    before = await shown(backend, redrive)
    clock.advance(timedelta(days=30))
    await advanced(backend)
    after = await shown(backend, redrive)

    assert before.state is RedriveState.PAUSED
    assert (after.state, after.reason) == (
        RedriveState.CANCELLED,
        "Nobody resumed it in time.",
    )


async def test_abandoned_redrive_of_a_tenant_is_cancelled_after_a_day(
    backend: Backend, clock: StoreClock
) -> None:
    """Its place is needed by others."""
    redrive = await put_into(backend, await started(backend, tenant=ACME), RedriveState.PAUSED)
    clock.advance(timedelta(days=1, milliseconds=-1))
    await advanced(backend)
    before = await shown(backend, redrive)
    clock.advance(timedelta(milliseconds=1))
    await advanced(backend)

    assert before.state is RedriveState.PAUSED
    assert (await shown(backend, redrive)).state is RedriveState.CANCELLED


async def test_ended_redrive_keeps_no_address(backend: Backend) -> None:
    """Whatever part of the filter names it."""
    names: Any = dict.fromkeys(("text", "code", "kind", "group"), "ana@example.com")
    redrive = await put_into(backend, await started(backend, **names), RedriveState.CANCELLED)
    kept = (await shown(backend, redrive)).wanted
    plain = await put_into(backend, await started(backend, code="550"), RedriveState.CANCELLED)

    assert "ana" not in repr(kept)
    assert kept.text == ""
    assert (await shown(backend, plain)).wanted.code == "550"


async def test_ended_redrives_of_unknown_tenants_are_bounded(
    backend: Backend, clock: StoreClock
) -> None:
    """All of them together: names cost nothing."""
    for number in range(103):
        clock.advance(timedelta(seconds=1))
        redrive = await started(backend, tenant=f"nobody-{number}")
        await put_into(backend, redrive, RedriveState.CANCELLED)
        await backend.redrives.forget(redrive, limit=10)

    assert len((await backend.redrives.list(limit=200)).rows) == 100

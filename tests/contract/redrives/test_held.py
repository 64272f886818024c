"""Redrives, held: messages of paused and disabled tenants are left out, and counted."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carteiro.model import RedriveState
from carteiro.ports import Backend
from support.builders import ACME, BRASA
from support.builders import sent as was_sent
from support.burying import buried
from support.clock import StoreClock
from support.redriving import advanced, shown, started, worked

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


@pytest.mark.parametrize("switch", ["paused", "disabled"])
async def test_held_tenant_does_not_hold_up_others(
    backend: Backend, clock: StoreClock, switch: str
) -> None:
    """Its messages would have no result, so that the others wait for them; they stay dead letters."""
    mine = [await buried(backend, ACME) for _ in range(7)]
    theirs = [await buried(backend, BRASA) for _ in range(6)]
    clock.advance(HOUR)
    await _switched(backend, **{switch: True})
    redrive = await started(backend)
    done = []
    for _ in range(12):
        await advanced(backend)
        done += await worked(backend, was_sent())
        clock.advance(SECOND)

    after = await shown(backend, redrive)
    assert sorted(done) == sorted(mine)
    assert (after.state, after.course.sent, after.course.skipped) == (RedriveState.FINISHED, 7, 6)
    assert after.reason == "6 were left out: their tenants were paused or disabled."
    await _switched(backend, **{switch: False})
    await started(backend, tenant=BRASA)
    await advanced(backend)
    assert {*await worked(backend, was_sent())} < {*theirs}


async def _switched(backend: Backend, **changes: Any) -> None:
    await backend.tenants.change(BRASA, lambda tenant: replace(tenant, **changes))

"""Alerts, isolated: nothing about an erased tenant is left."""

from carteiro.model import TenantId
from carteiro.ports import Backend
from support.alerting import MINUTE, OFTEN, RULES, full, moved, often, states
from support.builders import ACME, BRASA, a_message, dead
from support.clock import StoreClock
from support.steps import accepted, attempted

SYSTEM = TenantId("system")


async def test_erased_tenant_has_no_alerts_silences_and_notices(
    backend: Backend, clock: StoreClock
) -> None:
    """Of a notice about several tenants, the others' part stays."""
    await backend.alerts.note_dead_letters(every=MINUTE, but=SYSTEM)
    for tenant in (ACME, BRASA):
        await accepted(backend.store, a_message(tenant))
        await attempted(backend.store, dead())
    clock.advance(5 * MINUTE)
    await backend.alerts.note_dead_letters(every=MINUTE, but=SYSTEM)
    await moved(backend, often(ACME), often(BRASA), full())
    for tenant in (ACME, BRASA):
        await backend.alerts.silence(OFTEN, tenant, tenant, lasts=MINUTE, reason="known")
    await backend.alerts.spread(["log"])

    erased = await backend.tenants.erase(ACME)

    assert erased is not None
    assert not erased.has_more
    assert [each.subject for each in await backend.alerts.silences()] == [BRASA]
    assert [each.subject for each in await backend.alerts.silenced()] == [BRASA]
    assert f"{OFTEN} {ACME}" not in await states(backend)
    waiting = [each.notice for each in await backend.alerts.waiting()]
    assert ACME not in str(waiting)
    assert BRASA in str([each.counts for each in waiting])
    assert len(waiting) == 3


async def test_look_that_began_before_the_erasure_stores_nothing(backend: Backend) -> None:
    """Its findings are about a tenant that is gone."""
    await backend.tenants.erase(ACME)

    assert await backend.alerts.move([often(ACME)], RULES) == []
    assert await states(backend) == {}

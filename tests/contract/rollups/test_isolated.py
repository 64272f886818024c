"""Rollups, isolated: the figures of a tenant are its own, and are deleted with it."""

from datetime import timedelta

from carteiro.model import NOTICES, TenantId
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message, dead, messages, sent
from support.clock import StoreClock
from support.steps import accepted, attempted

HOUR = timedelta(hours=1)


async def test_tenant_has_only_its_own_figures(backend: Backend) -> None:
    """Folded or not; also with a template of the same name."""
    await accepted(backend.store, a_message(ACME, template_type="welcome"))
    await attempted(backend.store, dead())
    await accepted(backend.store, a_message(BRASA, template_type="welcome"))
    await attempted(backend.store, sent())

    for _ in range(2):
        totals = [await backend.rollups.total("minute", HOUR, tenant=t) for t in (ACME, BRASA)]
        parts = [
            await backend.rollups.split("template", "minute", HOUR, tenant=t) for t in (ACME, BRASA)
        ]
        assert [(each["failed"], each["sent"]) for each in totals] == [(1, 0), (0, 1)]
        assert [each["welcome"]["sent"] for each in parts] == [0, 1]
        await backend.rollups.fold(limit=10, most=100)


async def test_own_notices_are_in_no_figures_of_all(backend: Backend) -> None:
    """Neither in the totals nor in those of a provider; the tenant that sends them has its own."""
    await backend.tenants.ensure([NOTICES])
    for tenant in (NOTICES, ACME):
        await accepted(backend.store, a_message(tenant))
        await attempted(backend.store, dead())

    for _ in range(2):
        everything = await backend.rollups.total("minute", HOUR)
        own = await backend.rollups.total("minute", HOUR, tenant=NOTICES)
        providers = await backend.rollups.split("provider", "minute", HOUR)
        assert (everything["accepted"], everything["failed"]) == (1, 1)
        assert (own["accepted"], own["failed"]) == (1, 1)
        assert [each["failed"] for each in providers.values()] == [1]
        await backend.rollups.fold(limit=10, most=100)


async def test_unknown_tenant_has_no_figures(backend: Backend) -> None:
    """Its figures are empty, not those of all."""
    await accepted(backend.store, a_message(ACME))

    assert await backend.rollups.total("minute", HOUR, tenant=TenantId("nobody")) == {}


async def test_figures_of_an_erased_tenant_go_in_pages(backend: Backend, clock: StoreClock) -> None:
    """A year of hours in one transaction would hold up everybody who writes."""
    for _ in range(5):
        await accepted(backend.store, a_message(ACME))
        await backend.rollups.fold(limit=100, most=100)
        clock.advance(HOUR)
    pages = [await backend.tenants.erase(ACME, limit=5) for _ in range(3)]

    assert [page and page.has_more for page in pages] == [True, True, False]  # 10 rows
    assert await backend.tenants.find([ACME]) == [None]


async def test_erased_tenant_leaves_no_figures(backend: Backend) -> None:
    """Neither folded ones nor notes; the totals stay, and a new tenant of the same name starts at zero."""
    await accepted(backend.store, *messages(2, ACME))
    await backend.rollups.fold(limit=10, most=100)
    await accepted(backend.store, a_message(ACME), a_message(BRASA))
    erased = await backend.tenants.erase(ACME)
    assert erased is not None
    assert not erased.has_more

    assert await backend.rollups.total("minute", HOUR, tenant=ACME) == {}
    assert set(await backend.rollups.split("tenant", "minute", HOUR)) == {BRASA}
    assert await backend.rollups.total("minute", HOUR) == {"accepted": 4}

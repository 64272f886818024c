"""Cache of the tenants that a process has seen."""

from collections.abc import AsyncIterator

import pytest

from carteiro.model import Tenant, TenantId
from carteiro.ports import Backend
from carteiro.runtime.fresh import FRESH_FOR
from carteiro.runtime.tenant_cache import TenantCache
from support.builders import ACME, BRASA, a_tenant
from support.quick_store import quick_backend


class Watch:
    """A clock that a test moves by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    """A store without tenants."""
    async with quick_backend() as opened:
        yield opened


async def _names(cache: TenantCache, *ids: TenantId) -> list[str]:
    settings = await cache.settings(ids)
    return [settings[each].name for each in ids]


async def test_change_is_seen_after_a_few_seconds(backend: Backend) -> None:
    """Until then the cached tenant is used; another tenant is queried at once."""
    watch = Watch()
    cache = TenantCache(backend.tenants, clock=watch)
    await backend.tenants.define([a_tenant(name="before"), a_tenant(BRASA, name="brasa")])
    seen = [await _names(cache, ACME)]

    await backend.tenants.define([a_tenant(name="after")])
    seen.append(await _names(cache, ACME, BRASA))
    watch.now += FRESH_FOR.total_seconds()
    seen.append(await _names(cache, ACME, BRASA))

    assert seen == [["before"], ["before", "brasa"], ["after", "brasa"]]


async def test_lookup_creates_no_tenant(backend: Backend) -> None:
    """A missing tenant has the defaults, and is still missing afterwards."""
    cache = TenantCache(backend.tenants)

    assert await cache.settings([ACME]) == {ACME: Tenant(ACME)}
    assert await backend.tenants.find([ACME]) == [None]


async def test_missing_tenant_is_created_and_existing_one_stays(backend: Backend) -> None:
    """Its settings are queried, also when only its name is cached."""
    await backend.tenants.define([a_tenant(name="Acme")])
    cache = TenantCache(backend.tenants)

    await cache.ensure({ACME, BRASA})

    assert await _names(cache, ACME, BRASA) == ["Acme", ""]
    assert await backend.tenants.find([BRASA]) == [Tenant(BRASA)]

"""The tenants that a process remembers."""

from collections.abc import AsyncIterator

import pytest

from carteiro.model import Tenant, TenantId
from carteiro.ports import Backend
from carteiro.runtime.fresh import FRESH_FOR
from carteiro.runtime.tenant_cache import TenantCache
from support.builders import ACME, BRASA, a_tenant
from support.quick_store import quick_backend


class Watch:
    """A clock that counts seconds when it is told to."""

    now = 1000.0

    def __call__(self) -> float:
        """What it shows."""
        return self.now


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    """A store that knows nobody."""
    async with quick_backend() as opened:
        yield opened


async def _names(cache: TenantCache, *ids: TenantId) -> list[str]:
    settings = await cache.settings(ids)
    return [settings[each].name for each in ids]


async def test_a_change_is_seen_after_a_few_seconds(backend: Backend) -> None:
    """Until then what is known is good enough; another tenant is asked for at once."""
    watch = Watch()
    cache = TenantCache(backend.tenants, clock=watch)
    await backend.tenants.define([a_tenant(name="before"), a_tenant(BRASA, name="brasa")])
    seen = [await _names(cache, ACME)]

    await backend.tenants.define([a_tenant(name="after")])
    seen.append(await _names(cache, ACME, BRASA))
    watch.now += FRESH_FOR.total_seconds()
    seen.append(await _names(cache, ACME, BRASA))

    assert seen == [["before"], ["before", "brasa"], ["after", "brasa"]]


async def test_looking_makes_nobody(backend: Backend) -> None:
    """A tenant that is not there has the defaults, and is still not there."""
    cache = TenantCache(backend.tenants)

    assert await cache.settings([ACME]) == {ACME: Tenant(ACME)}
    assert await backend.tenants.find([ACME]) == [None]


async def test_what_is_missing_is_made_and_what_is_there_stays(backend: Backend) -> None:
    """What a tenant is like is asked for, however it came to be known."""
    await backend.tenants.define([a_tenant(name="Acme")])
    cache = TenantCache(backend.tenants)

    await cache.ensure({ACME, BRASA})

    assert await _names(cache, ACME, BRASA) == ["Acme", ""]
    assert await backend.tenants.find([BRASA]) == [Tenant(BRASA)]

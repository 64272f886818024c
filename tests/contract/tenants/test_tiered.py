"""Tenants, tiered: a tenant can only be of a tier that has a weight."""

import pytest

from carteiro.errors import TierUnknown
from carteiro.model import TenantId
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_tenant


async def test_tier_without_a_weight_is_refused(backend: Backend) -> None:
    """The rest of the call is not applied, too."""
    await backend.tenants.weigh_tier("gold", 2.0)
    new = TenantId("new")

    with pytest.raises(TierUnknown, match="glod"):
        await backend.tenants.define([a_tenant(BRASA, tier="gold"), a_tenant(new, tier="glod")])

    assert await backend.tenants.find([BRASA, new]) == [a_tenant(BRASA), None]


async def test_tier_with_a_weight_is_accepted(backend: Backend) -> None:
    """Also with a weight of the tenant's own."""
    await backend.tenants.weigh_tier("gold", 2.0)

    await backend.tenants.define([a_tenant(tier="gold", weight=3.0), a_tenant(BRASA, tier="gold")])

    found = await backend.tenants.find([ACME, BRASA])
    assert [each.tier for each in found if each is not None] == ["gold", "gold"]

"""Creates and changes tenants, inside one transaction: their rows, and at once the turns of their waiting jobs."""

from collections.abc import Mapping, Sequence

from carteiro.model import Tenant, TenantId
from carteiro.policy.fairness import rescaled, stride
from carteiro.stores.columns import FAR
from carteiro.stores.sql.session import Session
from carteiro.stores.tenant_columns import tenant_row


async def define(session: Session, tenants: Sequence[Tenant], now: int) -> None:
    """Create or change tenants, and act on their waiting backlog at once. The caller holds the lock of the ring."""
    named = {tenant.id: tenant for tenant in tenants}
    if not named:
        return
    strides = await _strides(session, named)
    seats = await session.fetch("tenants_seats", tenants=list(named))
    rows = [[*tenant_row(tenant), strides[identity]] for identity, tenant in named.items()]
    await session.run("tenants_define", rows=rows, now=now)
    moved = []
    for kind, identity, vt, alarm, v, old in seats:
        wake_at = FAR if named[identity].is_held else None if alarm is None else min(alarm, now)
        moved.append((kind, identity, rescaled(vt, v, old=old, new=strides[identity]), wake_at))
    if moved:
        await session.run("tenants_reseat", rows=moved)


async def _strides(session: Session, tenants: Mapping[TenantId, Tenant]) -> Mapping[TenantId, int]:
    """The cost of a job for each tenant: by its own weight, else its tier's, else 1."""
    tiers = sorted({tenant.tier for tenant in tenants.values() if tenant.tier is not None})
    weights = dict(await session.fetch("tier_weights", tiers=tiers)) if tiers else {}
    return {
        identity: stride(weights.get(tenant.tier, 1.0) if tenant.weight is None else tenant.weight)
        for identity, tenant in tenants.items()
    }

"""Tenants and their shares.

What changes the turns of tenants does so under the lock of the ring: claims wait for it, and it is short.
"""

import builtins
from collections.abc import Mapping, Sequence

from carteiro.model import (
    ApiLimits,
    Charged,
    Cursor,
    Erased,
    Fairness,
    KindName,
    Page,
    SendLimit,
    Standing,
    Tenant,
    TenantId,
)
from carteiro.policy.fairness import rescaled, stride
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND
from carteiro.stores.columns import FAR
from carteiro.stores.sql.door import charge
from carteiro.stores.sql.session import Database, Erasing, Session, Wake
from carteiro.stores.tenant_checks import claims_of, refuse_claimed, refuse_unknown, tiers_of
from carteiro.stores.tenant_columns import (
    fairness_of,
    fairness_text,
    standing_of,
    tenant_columns,
    tenant_of,
)


class SqlTenants:
    """See `carteiro.ports.tenants.Tenants` for what it promises."""

    def __init__(self, db: Database, wake: Wake, erasing: Erasing, fairness: Fairness) -> None:
        self._db = db
        self._wake = wake
        self._erasing = erasing
        self._fairness = fairness

    async def define(self, tenants: Sequence[Tenant]) -> None:
        """Create or change tenants; a change of weight rescales their virtual time."""
        for tenant in tenants:
            tenant.check()
        claims, tiers = claims_of(tenants), tiers_of(tenants)
        now = await self._db.now()

        async def change(session: Session) -> None:
            await session.fetch("lock_ring")
            await _refuse_unknown(session, tiers)
            await _claim(session, [tenant.id for tenant in tenants], claims)
            await define(session, tenants, now)

        await self._db.write(change)
        await self._wake.tell()

    async def charge(self, tenant: TenantId, refused: int, *, limits: ApiLimits) -> Charged:
        """Count messages that were refused, as far as they fit."""
        if not limits.has_any:
            return Charged(0)
        now = await self._db.now()
        return await self._db.write(lambda session: charge(session, tenant, refused, limits, now))

    async def ensure(self, ids: Sequence[TenantId]) -> None:
        """Create the tenants that are missing; known ones stay as they are."""
        now = await self._db.now()
        await self._db.run("tenants_ensure", ids=ids, stride=stride(1.0), now=now)

    async def find(self, ids: Sequence[TenantId]) -> builtins.list[Tenant | None]:
        """The tenants with these ids, None for an unknown one."""
        found = {row[0]: tenant_of(row) for row in await self._db.fetch("tenants_find", ids=ids)}
        return [found.get(identity) for identity in ids]

    async def claimants(self, domains: Sequence[str]) -> builtins.list[TenantId | None]:
        """The tenant that has claimed each domain, None for one that nobody has."""
        found = dict(await self._db.fetch("domains_find", domains=domains))
        return [found.get(domain) for domain in domains]

    async def weigh_tier(self, tier: str, weight: float) -> None:
        """Set the weight of a tier; its tenants without a weight of their own follow at once."""
        Tenant(TenantId(""), weight=weight).check()
        now = await self._db.now()

        async def change(session: Session) -> None:
            await session.fetch("lock_ring")
            await session.run("tier_define", name=tier, weight=weight)
            followers = await session.fetch("tier_tenants", tier=tier)
            await define(session, [tenant_of(row) for row in followers], now)

        await self._db.write(change)
        await self._wake.tell()

    async def tune(self, fairness: Fairness | None) -> None:
        """Change the fairness settings of all workers now; None goes back to the configured ones."""
        if fairness is None:
            await self._db.run("override_drop", name="fairness")
        else:
            fairness.check()
            await self._db.run("override_set", name="fairness", setting=fairness_text(fairness))
        await self._wake.tell()

    async def fairness(self) -> tuple[Fairness, bool]:
        """The fairness settings in force here, and whether `tune` gave them."""
        tuned = await _tuned(self._db)
        return tuned or self._fairness, tuned is not None

    async def limit(self, kind: KindName, limit: SendLimit | None) -> None:
        """Set or lift the limit that all claims of a kind share."""
        if limit is not None:
            limit.check()
        count = None if limit is None else limit.count
        per_ms = None if limit is None else limit.per // MILLISECOND

        async def change(session: Session) -> None:
            await session.fetch("lock_ring")
            await session.run("limit_kind", kind=kind, count=count, per_ms=per_ms)

        await self._db.write(change)
        await self._wake.tell()

    async def standings(self, kind: KindName) -> builtins.list[Standing]:
        """How each tenant with work or history of this kind fares, least served first."""
        fairness = await fairness_now(self._db, self._fairness)
        now = await self._db.now()
        rows = await self._db.fetch("standings", kind=kind, now=now, longest=LONGEST_HOLD_MS)
        return [standing_of(kind, row, fairness) for row in rows]

    async def erase(self, tenant: TenantId, *, limit: int = 1000) -> Erased | None:
        """Take a tenant and everything of it away, in pages of messages; None if there is none."""
        erased, _ = await self._erasing.tenant(tenant, busy=None, limit=limit)
        return erased

    async def list(self, *, cursor: Cursor | None = None, limit: int = 100) -> Page[Tenant]:
        """The tenants, by id."""
        rows = await self._db.fetch("tenants_list", after=cursor or "", limit=limit + 1)
        tenants = [tenant_of(row) for row in rows[:limit]]
        return Page(tenants, Cursor(tenants[-1].id) if len(rows) > limit else None)


async def fairness_now(session: Session, configured: Fairness) -> Fairness:
    """The fairness settings in force: changed at run time, else as configured."""
    return await _tuned(session) or configured


async def _tuned(session: Session) -> Fairness | None:
    return fairness_of(await session.value("override_get", name="fairness"))


async def _refuse_unknown(session: Session, tiers: Sequence[str]) -> None:
    if tiers:
        refuse_unknown(tiers, dict(await session.fetch("tier_weights", tiers=tiers)))


async def _claim(
    session: Session, tenants: Sequence[TenantId], claims: Mapping[str, TenantId]
) -> None:
    """Make the domains those of the tenants, and no others; what is another's is refused.

    The caller holds the lock of the ring, so that of two who claim one the second finds it claimed.
    """
    await session.run("domains_release", tenants=tenants)
    if claims:
        refuse_claimed(claims, await session.fetch("domains_find", domains=[*claims]))
        await session.run("domains_claim", claims=[*claims.items()])


async def define(session: Session, tenants: Sequence[Tenant], now: int) -> None:
    """Create or change tenants, and act on their waiting backlog at once. The caller holds the lock of the ring."""
    named = {tenant.id: tenant for tenant in tenants}
    if not named:
        return
    strides = await _strides(session, named)
    seats = await session.fetch("tenants_seats", tenants=list(named))
    rows = [
        [*tenant_columns(tenant).values(), strides[identity]] for identity, tenant in named.items()
    ]
    await session.run("tenants_define", rows=rows, now=now)
    moved = []
    for kind, identity, vt, is_in_ring, v, old in seats:
        wake_at = FAR if named[identity].is_held else None if is_in_ring else now
        moved.append((kind, identity, rescaled(vt, v, old=old, new=strides[identity]), wake_at))
    if moved:
        await session.run("tenants_reseat", rows=moved)


async def _strides(session: Session, tenants: Mapping[TenantId, Tenant]) -> Mapping[TenantId, int]:
    """What a job costs each tenant: by its own weight, else its tier's, else 1."""
    tiers = sorted({tenant.tier for tenant in tenants.values() if tenant.tier is not None})
    weights = dict(await session.fetch("tier_weights", tiers=tiers)) if tiers else {}
    return {
        identity: stride(weights.get(tenant.tier, 1.0) if tenant.weight is None else tenant.weight)
        for identity, tenant in tenants.items()
    }

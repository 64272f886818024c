"""Tenants and their shares on Postgres.

What changes the turns of tenants does so under the lock of the ring: claims wait for it, and it is short.
"""

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import replace

from carteiro.model import (
    ApiLimits,
    Charged,
    Cursor,
    Erased,
    Fairness,
    KindName,
    MessageId,
    Page,
    SendLimit,
    Standing,
    Tenant,
    TenantId,
)
from carteiro.policy.fairness import rescaled, stride
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND
from carteiro.stores.columns import FAR
from carteiro.stores.postgres.accept import charge
from carteiro.stores.postgres.database import Database, Session
from carteiro.stores.postgres.erasing import erase_rows, erase_tenant, take_jobs
from carteiro.stores.postgres.options import PostgresOptions
from carteiro.stores.postgres.wake import PostgresWake
from carteiro.stores.tenant_checks import claims_of, refuse_claimed, refuse_unknown, tiers_of
from carteiro.stores.tenant_columns import (
    fairness_of,
    fairness_text,
    standing_of,
    tenant_columns,
    tenant_of,
)


class PostgresTenants:
    """See `carteiro.ports.tenants.Tenants` for what it promises."""

    def __init__(self, db: Database, wake: PostgresWake, options: PostgresOptions) -> None:
        self._db = db
        self._wake = wake
        self._options = options

    async def define(self, tenants: Sequence[Tenant]) -> None:
        """Create or change tenants; a change of weight rescales their virtual time."""
        for tenant in tenants:
            tenant.check()
        claims, tiers = claims_of(tenants), tiers_of(tenants)
        now = await self._db.now()
        async with self._db.transaction() as session:
            await session.fetch("lock_ring")
            await _refuse_unknown(session, tiers)
            await _claim(session, [tenant.id for tenant in tenants], claims)
            await _define(session, tenants, now)
        await self._wake.tell()

    async def charge(self, tenant: TenantId, refused: int, *, limits: ApiLimits) -> Charged:
        """Count messages that were refused, as far as they fit."""
        if not limits.has_any:
            return Charged(0)
        now = await self._db.now()
        async with self._db.transaction() as session:
            return await charge(session, tenant, refused, limits, now)

    async def ensure(self, ids: Sequence[TenantId]) -> None:
        """Create the tenants that are missing; known ones stay as they are."""
        await self._db.fetch("tenants_ensure", ids, stride(1.0), await self._db.now())

    async def find(self, ids: Sequence[TenantId]) -> builtins.list[Tenant | None]:
        """The tenants with these ids, None for an unknown one."""
        found = {row[0]: tenant_of(row) for row in await self._db.fetch("tenants_find", ids)}
        return [found.get(identity) for identity in ids]

    async def claimants(self, domains: Sequence[str]) -> builtins.list[TenantId | None]:
        """The tenant that has claimed each domain, None for one that nobody has."""
        found = dict(await self._db.fetch("domains_find", domains))
        return [found.get(domain) for domain in domains]

    async def weigh_tier(self, tier: str, weight: float) -> None:
        """Set the weight of a tier; its tenants without a weight of their own follow at once."""
        Tenant(TenantId(""), weight=weight).check()
        now = await self._db.now()
        async with self._db.transaction() as session:
            await session.fetch("lock_ring")
            await session.fetch("tier_define", tier, weight)
            followers = await session.fetch("tier_tenants", tier)
            await _define(session, [tenant_of(row) for row in followers], now)
        await self._wake.tell()

    async def tune(self, fairness: Fairness | None) -> None:
        """Change the fairness settings of all workers now; None goes back to the configured ones."""
        if fairness is None:
            await self._db.fetch("override_drop", "fairness")
        else:
            fairness.check()
            await self._db.fetch("override_set", "fairness", fairness_text(fairness))
        await self._wake.tell()

    async def fairness(self) -> tuple[Fairness, bool]:
        """The fairness settings in force here, and whether `tune` gave them."""
        tuned = await _tuned(self._db)
        return tuned or self._options.fairness, tuned is not None

    async def limit(self, kind: KindName, limit: SendLimit | None) -> None:
        """Set or lift the limit that all claims of a kind share."""
        if limit is not None:
            limit.check()
        count = None if limit is None else limit.count
        per_ms = None if limit is None else limit.per // MILLISECOND
        async with self._db.transaction() as session:
            await session.fetch("lock_ring")
            await session.fetch("limit_kind", kind, count, per_ms)
        await self._wake.tell()

    async def standings(self, kind: KindName) -> builtins.list[Standing]:
        """How each tenant with work or history of this kind fares, least served first."""
        fairness = await fairness_now(self._db, self._options.fairness)
        now = await self._db.now()
        rows = await self._db.fetch("standings", kind, now, LONGEST_HOLD_MS)
        return [standing_of(kind, row, fairness) for row in rows]

    async def erase(self, tenant: TenantId, *, limit: int = 1000) -> Erased | None:
        """Take a tenant and everything of it away, in pages of messages; None if there is none."""
        erased, _ = await self.erase_past(None, tenant, limit=limit)
        return erased

    async def erase_past(
        self, busy: Sequence[MessageId] | None, tenant: TenantId, *, limit: int
    ) -> tuple[Erased | None, builtins.list[MessageId]]:
        """As `erase`, past what is ``busy`` where jobs are kept elsewhere; with the messages that went."""
        now = await self._db.now()
        async with self._db.transaction() as session:
            await session.fetch("by_index")
            await session.fetch("lock_ring")
            found = await session.first("tenants_find", [tenant])
            if found is None:
                return None, []
            await _define(session, [replace(tenant_of(found), disabled=True)], now)
            messages = await take_jobs(session, tenant, now=now, limit=limit, busy=busy)
        async with self._db.transaction() as session:
            await session.fetch("by_index")
            erased = await erase_rows(session, tenant, messages, limit=limit)
        if erased.has_more:
            return erased, list(messages.ids)
        async with self._db.transaction() as session:
            await session.fetch("by_index")
            await session.fetch("lock_ring")
            is_gone = await erase_tenant(session, tenant)
        return replace(erased, has_more=not is_gone), list(messages.ids)

    async def list(self, *, cursor: Cursor | None = None, limit: int = 100) -> Page[Tenant]:
        """The tenants, by id."""
        rows = await self._db.fetch("tenants_list", cursor or "", limit + 1)
        tenants = [tenant_of(row) for row in rows[:limit]]
        return Page(tenants, Cursor(tenants[-1].id) if len(rows) > limit else None)


async def fairness_now(db: Database | Session, configured: Fairness) -> Fairness:
    """The fairness settings in force: changed at run time, else as configured."""
    return await _tuned(db) or configured


async def _tuned(db: Database | Session) -> Fairness | None:
    return fairness_of(await db.value("override_get", "fairness"))


async def _refuse_unknown(session: Session, tiers: Sequence[str]) -> None:
    if tiers:
        refuse_unknown(tiers, dict(await session.fetch("tier_weights", tiers)))


async def _claim(
    session: Session, tenants: Sequence[TenantId], claims: Mapping[str, TenantId]
) -> None:
    """Make the domains those of the tenants, and no others; what is another's is refused.

    The caller holds the lock of the ring, so that of two who claim one the second finds it claimed.
    """
    await session.fetch("domains_release", tenants)
    if claims:
        refuse_claimed(claims, await session.fetch("domains_find", [*claims]))
        await session.fetch("domains_claim", [*claims], [*claims.values()])


async def _define(session: Session, tenants: Sequence[Tenant], now: int) -> None:
    """Create or change tenants, and act on their waiting backlog at once. The caller holds the lock of the ring."""
    named = {tenant.id: tenant for tenant in tenants}
    if not named:
        return
    strides = await _strides(session, named)
    seats = await session.fetch("tenants_seats", list(named))
    rows = [
        [*tenant_columns(tenant).values(), strides[identity]] for identity, tenant in named.items()
    ]
    await session.fetch("tenants_define", *map(list, zip(*rows, strict=True)), now)
    moved = []
    for kind, identity, vt, is_in_ring, v, old in seats:
        wake_at = FAR if named[identity].is_held else None if is_in_ring else now
        moved.append((kind, identity, rescaled(vt, v, old=old, new=strides[identity]), wake_at))
    if moved:
        await session.fetch("tenants_reseat", *map(list, zip(*moved, strict=True)))


async def _strides(session: Session, tenants: Mapping[TenantId, Tenant]) -> Mapping[TenantId, int]:
    """What a job costs each tenant: by its own weight, else its tier's, else 1."""
    tiers = sorted({tenant.tier for tenant in tenants.values() if tenant.tier is not None})
    weights = dict(await session.fetch("tier_weights", tiers)) if tiers else {}
    return {
        identity: stride(weights.get(tenant.tier, 1.0) if tenant.weight is None else tenant.weight)
        for identity, tenant in tenants.items()
    }

"""Tenants and their shares.

Every change to the turns of tenants holds the lock of the ring. Claims wait for it, so it is short.
"""

import builtins
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from carteiro import model
from carteiro.errors import DomainClaimed, TierUnknown
from carteiro.policy.audit import tenant_change
from carteiro.policy.fairness import stride
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND
from carteiro.policy.tenancy import domains_of
from carteiro.stores.sql.audit import Noted, note
from carteiro.stores.sql.defining import define
from carteiro.stores.sql.door import charge
from carteiro.stores.sql.erasing import SqlErasing
from carteiro.stores.sql.session import Database, Session, Wake
from carteiro.stores.tenant_columns import (
    fairness_of,
    fairness_text,
    standing_of,
    tenant_of,
)


class SqlTenants:
    """See `carteiro.ports.tenants.Tenants` for what it promises."""

    def __init__(
        self, db: Database, wake: Wake, erasing: SqlErasing, fairness: model.Fairness
    ) -> None:
        self._db = db
        self._wake = wake
        self._erasing = erasing
        self._fairness = fairness

    async def define(self, tenants: Sequence[model.Tenant]) -> None:
        """Create or change tenants; a change of weight rescales their virtual time."""
        for tenant in tenants:
            tenant.check()
        now = await self._db.now()

        async def replace(session: Session) -> None:
            await session.fetch("lock_ring")
            await _define(
                session, await _found(session, [each.id for each in tenants]), tenants, now
            )

        await self._db.write(replace)
        await self._wake.tell()

    async def change(
        self, tenant: model.TenantId, changed: Callable[[model.Tenant], model.Tenant]
    ) -> model.Tenant | None:
        """Replace a tenant by what ``changed`` makes of it, with no other change in between; None if there is none."""
        now = await self._db.now()

        async def change(session: Session) -> model.Tenant | None:
            await session.fetch("lock_ring")
            known = await _found(session, [tenant])
            if not known:
                return None
            after = changed(known[tenant])
            after.check()
            await _define(session, known, [after], now)
            return after

        after = await self._db.write(change)
        await self._wake.tell()
        return after

    async def charge(
        self, tenant: model.TenantId, refused: int, *, limits: model.ApiLimits
    ) -> model.Charged:
        """Count refused messages, up to the limits; nothing is counted for an unknown tenant."""
        if not limits.has_any:
            return model.Charged(0)
        now = await self._db.now()
        return await self._db.write(lambda session: charge(session, tenant, refused, limits, now))

    async def ensure(self, ids: Sequence[model.TenantId]) -> None:
        """Create the missing tenants; known ones do not change."""
        now = await self._db.now()

        async def create(session: Session) -> None:
            made = await session.fetch("tenants_ensure", ids=ids, stride=stride(1.0), now=now)
            await note(session, now, *(Noted("add", "tenant", each, each) for [each] in made))

        await self._db.write(create)

    async def find(self, ids: Sequence[model.TenantId]) -> builtins.list[model.Tenant | None]:
        """The tenants with these ids, None for an unknown one."""
        found = await _found(self._db, ids)
        return [found.get(identity) for identity in ids]

    async def claimants(self, domains: Sequence[str]) -> builtins.list[model.TenantId | None]:
        """The tenant that claimed each domain (in normal form), None for an unclaimed one."""
        found = dict(await self._db.fetch("domains_find", domains=domains))
        return [found.get(domain) for domain in domains]

    async def weigh_tier(self, tier: str, weight: float) -> None:
        """Set the weight of a tier; it applies at once to its tenants without their own weight."""
        model.Tenant(model.TenantId(""), weight=weight).check()
        now = await self._db.now()

        async def change(session: Session) -> None:
            await session.fetch("lock_ring")
            before = dict(await session.fetch("tier_weights", tiers=[tier])).get(tier)
            await session.run("tier_define", name=tier, weight=weight)
            if before != weight:
                was, now_is = {"weight": before}, {"weight": weight}
                await note(session, now, Noted("set", "tier", tier, before=was, after=now_is))
            followers = await session.fetch("tier_tenants", tier=tier)
            await define(session, [tenant_of(row) for row in followers], now)

        await self._db.write(change)
        await self._wake.tell()

    async def tune(self, fairness: model.Fairness | None) -> None:
        """Change the fairness settings of all workers now; None restores the configured ones."""
        if fairness is not None:
            fairness.check()
        now = await self._db.now()

        async def change(session: Session) -> None:
            await session.fetch("lock_ring")
            before = await _tuned(session)
            if fairness is None:
                await session.run("override_drop", name="fairness")
            else:
                text = fairness_text(fairness)
                await session.run("override_set", name="fairness", setting=text)
            if before != fairness:
                was, now_is = (
                    None if each is None else asdict(each) for each in (before, fairness)
                )
                await note(session, now, Noted("set", "fairness", "", before=was, after=now_is))

        await self._db.write(change)
        await self._wake.tell()

    async def fairness(self) -> tuple[model.Fairness, bool]:
        """The fairness settings in force here; True if they come from `tune`."""
        tuned = await _tuned(self._db)
        return tuned or self._fairness, tuned is not None

    async def limit(self, kind: model.KindName, limit: model.SendLimit | None) -> None:
        """Set or remove the limit that all claims of a kind share."""
        if limit is not None:
            limit.check()
        count = None if limit is None else limit.count
        per_ms = None if limit is None else limit.per // MILLISECOND
        now = await self._db.now()

        async def change(session: Session) -> None:
            await session.fetch("lock_ring")
            known = {row[0]: (row[1], row[2]) for row in await session.fetch("limits")}
            await session.run("limit_kind", kind=kind, count=count, per_ms=per_ms)
            before, after = known.get(kind, (None, None)), (count, per_ms)
            if before != after:
                names = ("count", "per_ms")
                was, now_is = (
                    dict(zip(names, before, strict=True)),
                    dict(zip(names, after, strict=True)),
                )
                await note(session, now, Noted("set", "send limit", kind, before=was, after=now_is))

        await self._db.write(change)
        await self._wake.tell()

    async def standings(
        self, kind: model.KindName, *, tenants: Sequence[model.TenantId] | None = None
    ) -> builtins.list[model.Standing]:
        """The standing of each tenant with jobs or history of this kind, least served first."""
        fairness = await fairness_now(self._db, self._fairness)
        now, is_all = await self._db.now(), tenants is None
        rows = await self._db.fetch(
            "standings",
            kind=kind,
            now=now,
            longest=LONGEST_HOLD_MS,
            is_all=is_all,
            ids=[*(tenants or ())],
        )
        return [standing_of(kind, row, fairness) for row in rows]

    async def erase(self, tenant: model.TenantId, *, limit: int = 1000) -> model.Erased | None:
        """Delete a tenant and all its data, in pages of messages; None if there is none."""
        erased, _ = await self._erasing.tenant(tenant, busy=None, limit=limit)
        return erased

    async def list(
        self, *, cursor: model.Cursor | None = None, limit: int = 100
    ) -> model.Page[model.Tenant]:
        """The tenants, by id."""
        rows = await self._db.fetch("tenants_list", after=cursor or "", limit=limit + 1)
        tenants = [tenant_of(row) for row in rows[:limit]]
        return model.Page(tenants, model.Cursor(tenants[-1].id) if len(rows) > limit else None)


async def _found(
    session: Session, ids: Sequence[model.TenantId]
) -> dict[model.TenantId, model.Tenant]:
    return {row[0]: tenant_of(row) for row in await session.fetch("tenants_find", ids=ids)}


async def _define(
    session: Session,
    known: Mapping[model.TenantId, model.Tenant],
    tenants: Sequence[model.Tenant],
    now: int,
) -> None:
    """With the lock of the ring: of two transactions that claim one domain, the second finds it claimed."""
    claims = claims_of(tenants)
    if tiers := tiers_of(tenants):
        refuse_unknown(tiers, dict(await session.fetch("tier_weights", tiers=tiers)))
    await session.run("domains_release", tenants=[tenant.id for tenant in tenants])
    if claims:
        refuse_claimed(claims, await session.fetch("domains_find", domains=[*claims]))
        await session.run("domains_claim", claims=[*claims.items()])
    await define(session, tenants, now)
    await note(session, now, *_changes(known, tenants))


def _changes(
    known: Mapping[model.TenantId, model.Tenant], tenants: Sequence[model.Tenant]
) -> Iterator[Noted]:
    for tenant in {each.id: each for each in tenants}.values():
        before = known.get(tenant.id)
        if before != tenant:
            action, was, now_is = tenant_change(before, tenant)
            yield Noted(action, "tenant", tenant.id, tenant.id, was, now_is)


async def fairness_now(session: Session, configured: model.Fairness) -> model.Fairness:
    """The fairness settings in force: changed at run time, else as configured."""
    return await _tuned(session) or configured


async def _tuned(session: Session) -> model.Fairness | None:
    return fairness_of(await session.value("override_get", name="fairness"))


def claims_of(tenants: Sequence[model.Tenant]) -> dict[str, model.TenantId]:
    """Return the tenant of each domain; raise `DomainClaimed` if two tenants want the same one."""
    claims: dict[str, model.TenantId] = {}
    for tenant in {each.id: each for each in tenants}.values():
        for domain in sorted(domains_of(tenant)):
            if claims.setdefault(domain, tenant.id) != tenant.id:
                raise DomainClaimed(domain, claims[domain])
    return claims


def refuse_claimed(
    claims: Mapping[str, model.TenantId], found: Iterable[tuple[str, model.TenantId]]
) -> None:
    """Raise `DomainClaimed` if one of the domains was ``found`` to be another tenant's."""
    for domain, tenant in found:
        if claims[domain] != tenant:
            raise DomainClaimed(domain, tenant)


def tiers_of(tenants: Sequence[model.Tenant]) -> list[str]:
    """Return their tiers."""
    return sorted({tenant.tier for tenant in tenants if tenant.tier is not None})


def refuse_unknown(tiers: Sequence[str], known: Collection[str]) -> None:
    """Raise `TierUnknown` if one of the tiers is not among those that are ``known``."""
    for tier in tiers:
        if tier not in known:
            raise TierUnknown(tier)

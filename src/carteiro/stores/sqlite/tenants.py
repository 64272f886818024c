"""Tenants and their shares on SQLite."""

import builtins
import sqlite3
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
from carteiro.stores.sqlite.accept import charge
from carteiro.stores.sqlite.erasing import erase_tenant
from carteiro.stores.sqlite.opening import empty_log
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.reading import Reader
from carteiro.stores.sqlite.rows import as_json, run
from carteiro.stores.sqlite.wake import SqliteWake
from carteiro.stores.sqlite.writer import Writer
from carteiro.stores.tenant_checks import claims_of, refuse_claimed, refuse_unknown, tiers_of
from carteiro.stores.tenant_columns import (
    fairness_of,
    fairness_text,
    standing_of,
    tenant_columns,
    tenant_of,
)


class SqliteTenants:
    """See `carteiro.ports.tenants.Tenants` for what it promises."""

    def __init__(
        self, writer: Writer, reader: Reader, wake: SqliteWake, options: SqliteOptions
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._wake = wake
        self._options = options

    async def define(self, tenants: Sequence[Tenant]) -> None:
        """Create or change tenants; a change of weight rescales their virtual time."""
        for tenant in tenants:
            tenant.check()
        clock, claims, tiers = self._options.clock, claims_of(tenants), tiers_of(tenants)

        def change(db: sqlite3.Connection) -> None:
            _refuse_unknown(db, tiers)
            _claim(db, [tenant.id for tenant in tenants], claims)
            for tenant in tenants:
                _define(db, tenant, clock())

        await self._writer.do(change)
        self._wake.ring()

    async def charge(self, tenant: TenantId, refused: int, *, limits: ApiLimits) -> Charged:
        """Count messages that were refused, as far as they fit."""
        if not limits.has_any:
            return Charged(0)
        clock = self._options.clock
        return await self._writer.do(lambda db: charge(db, tenant, refused, limits, clock()))

    async def ensure(self, ids: Sequence[TenantId]) -> None:
        """Create the tenants that are missing; known ones stay as they are."""
        clock, rows = self._options.clock, as_json(ids)
        await self._writer.do(
            lambda db: run(db, "tenants_ensure", ids=rows, stride=stride(1.0), now=clock())
        )

    async def find(self, ids: Sequence[TenantId]) -> builtins.list[Tenant | None]:
        """The tenants with these ids, None for an unknown one."""
        rows = await self._reader.ask(
            lambda db: run(db, "tenants_find", ids=as_json(ids)).fetchall()
        )
        found = {row[0]: tenant_of(row) for row in rows}
        return [found.get(identity) for identity in ids]

    async def claimants(self, domains: Sequence[str]) -> builtins.list[TenantId | None]:
        """The tenant that has claimed each domain, None for one that nobody has."""
        found = dict(
            await self._reader.ask(
                lambda db: run(db, "domains_find", domains=as_json(domains)).fetchall()
            )
        )
        return [found.get(domain) for domain in domains]

    async def weigh_tier(self, tier: str, weight: float) -> None:
        """Set the weight of a tier; its tenants without a weight of their own follow at once."""
        Tenant(TenantId(""), weight=weight).check()
        clock = self._options.clock

        def change(db: sqlite3.Connection) -> None:
            run(db, "tier_define", name=tier, weight=weight)
            for row in run(db, "tier_tenants", tier=tier).fetchall():
                _define(db, tenant_of(row), clock())

        await self._writer.do(change)
        self._wake.ring()

    async def tune(self, fairness: Fairness | None) -> None:
        """Change the fairness settings of all workers now; None goes back to the configured ones."""
        if fairness is not None:
            fairness.check()

        def change(db: sqlite3.Connection) -> None:
            if fairness is None:
                run(db, "override_drop", name="fairness")
            else:
                run(db, "override_set", name="fairness", setting=fairness_text(fairness))

        await self._writer.do(change)
        self._wake.ring()

    async def fairness(self) -> tuple[Fairness, bool]:
        """The fairness settings in force here, and whether `tune` gave them."""
        tuned = await self._reader.ask(_tuned)
        return tuned or self._options.fairness, tuned is not None

    async def limit(self, kind: KindName, limit: SendLimit | None) -> None:
        """Set or lift the limit that all claims of a kind share."""
        if limit is not None:
            limit.check()
        count = None if limit is None else limit.count
        per_ms = None if limit is None else limit.per // MILLISECOND
        await self._writer.do(
            lambda db: run(db, "limit_kind", kind=kind, count=count, per_ms=per_ms)
        )
        self._wake.ring()

    async def standings(self, kind: KindName) -> builtins.list[Standing]:
        """How each tenant with work or history of this kind fares, least served first."""
        now = self._options.clock()

        def query(db: sqlite3.Connection) -> builtins.list[Standing]:
            fairness = fairness_now(db, self._options.fairness)
            rows = run(db, "standings", kind=kind, now=now, longest=LONGEST_HOLD_MS)
            return [standing_of(kind, row, fairness) for row in rows]

        return await self._reader.ask(query)

    async def erase(self, tenant: TenantId, *, limit: int = 1000) -> Erased | None:
        """Take a tenant and everything of it away, in pages of messages; None if there is none."""
        erased, _ = await self.erase_past(None, tenant, limit=limit)
        return erased

    async def erase_past(
        self, busy: Sequence[MessageId] | None, tenant: TenantId, *, limit: int
    ) -> tuple[Erased | None, builtins.list[MessageId]]:
        """As `erase`, past what is ``busy`` where jobs are kept elsewhere; with the messages that went."""
        clock = self._options.clock

        def take(db: sqlite3.Connection) -> tuple[Erased | None, builtins.list[MessageId]]:
            found = run(db, "tenants_find", ids=as_json([tenant])).fetchone()
            if found is None:
                return None, []
            now = clock()
            _define(db, replace(tenant_of(found), disabled=True), now)
            return erase_tenant(db, tenant, now=now, limit=limit, busy=busy)

        erased, gone = await self._writer.do(take)
        if erased is not None and not erased.has_more:
            await self._reader.ask(empty_log)
        return erased, gone

    async def list(self, *, cursor: Cursor | None = None, limit: int = 100) -> Page[Tenant]:
        """The tenants, by id."""
        rows = await self._reader.ask(
            lambda db: run(db, "tenants_list", after=cursor or "", limit=limit + 1).fetchall()
        )
        tenants = [tenant_of(row) for row in rows[:limit]]
        return Page(tenants, Cursor(tenants[-1].id) if len(rows) > limit else None)


def fairness_now(db: sqlite3.Connection, configured: Fairness) -> Fairness:
    """The fairness settings in force: changed at run time, else as configured."""
    return _tuned(db) or configured


def _tuned(db: sqlite3.Connection) -> Fairness | None:
    row = run(db, "override_get", name="fairness").fetchone()
    return None if row is None else fairness_of(row[0])


def _refuse_unknown(db: sqlite3.Connection, tiers: Sequence[str]) -> None:
    if tiers:
        known = {row[0] for row in run(db, "tiers_known", tiers=as_json(tiers))}
        refuse_unknown(tiers, known)


def _claim(
    db: sqlite3.Connection, tenants: Sequence[TenantId], claims: Mapping[str, TenantId]
) -> None:
    """Make the domains those of the tenants, and no others; what is another's is refused."""
    run(db, "domains_release", tenants=as_json(tenants))
    if claims:
        refuse_claimed(claims, run(db, "domains_find", domains=as_json([*claims])).fetchall())
        run(db, "domains_claim", claims=as_json([*claims.items()]))


def _define(db: sqlite3.Connection, tenant: Tenant, now: int) -> None:
    before = run(db, "tenant_before", id=tenant.id).fetchone()
    new_stride = stride(_weight(db, tenant))
    keeps_rate = before is not None and before[1] == tenant.rate_per_second
    run(
        db,
        "tenant_define",
        stride=new_stride,
        next_token_us=before[2] if keeps_rate else 0,
        now=now,
        **tenant_columns(tenant),
    )
    if before is not None:
        _reseat(db, tenant, now, old=before[0], new=new_stride)


def _weight(db: sqlite3.Connection, tenant: Tenant) -> float:
    if tenant.weight is not None:
        return tenant.weight
    row = run(db, "tier_weight", tier=tenant.tier).fetchone()
    return 1.0 if row is None else float(row[0])


def _reseat(db: sqlite3.Connection, tenant: Tenant, now: int, *, old: int, new: int) -> None:
    """Act on the waiting backlog at once: rescale, and look at the tenant again (or not, while it is held)."""
    for kind, vt, is_in_ring, v in run(db, "tenant_seats", tenant=tenant.id).fetchall():
        wake_at = FAR if tenant.is_held else None if is_in_ring else now
        changed = rescaled(vt, v, old=old, new=new)
        run(db, "tenant_reseat", kind=kind, tenant=tenant.id, vt=changed, wake_at=wake_at)

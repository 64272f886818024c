"""Tenants, and their shares of the machine."""

import builtins
from collections.abc import Sequence
from dataclasses import replace

from carteiro.model import (
    Erased,
    Fairness,
    KindName,
    SendLimit,
    Standing,
    Tenant,
    TenantId,
)
from carteiro.policy.fairness import priority, rescaled, rounds_without
from carteiro.policy.tenancy import domains_of
from carteiro.stores.sql.tenants import claims_of, refuse_claimed, refuse_unknown, tiers_of
from support.model.erasing import erase_tenant
from support.model.tables import FAR, KindClock, Seat, Tables, to_datetime_or_none


class ModelTenants:
    """The `Tenants` port on plain dicts."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def define(self, tenants: Sequence[Tenant]) -> None:
        """Create or change tenants; a change of weight rescales their virtual time."""
        for tenant in tenants:
            tenant.check()
        refuse_unknown(tiers_of(tenants), self._tables.tiers)
        self._refuse_claimed(tenants)
        now = self._tables.now()
        for tenant in tenants:
            self._define_one(tenant, now)

    def _refuse_claimed(self, tenants: Sequence[Tenant]) -> None:
        claims, named = claims_of(tenants), {tenant.id for tenant in tenants}
        owned = self._owners() if claims else {}
        found = [(domain, owned[domain]) for domain in claims if domain in owned]
        refuse_claimed(claims, [each for each in found if each[1] not in named])

    def _define_one(self, tenant: Tenant, now: int) -> None:
        before = self._tables.tenants.get(tenant.id)
        self._tables.tenants[tenant.id] = tenant
        if before is None or before.rate_per_second != tenant.rate_per_second:
            self._tables.next_token_us[tenant.id] = 0
        if before is not None:
            self._reseat(tenant, self._tables.stride_of(before), now)

    def _reseat(self, tenant: Tenant, old_stride: int, now: int) -> None:
        """Apply a change to the waiting backlog at once."""
        new_stride = self._tables.stride_of(tenant)
        for seat in self._tables.seats_of(tenant.id):
            v = self._clock(seat.kind).v
            seat.vt = rescaled(seat.vt, v, old=old_stride, new=new_stride)
            if tenant.is_held:
                seat.wakes_at = FAR
            elif seat.wakes_at is not None:
                seat.wakes_at = min(seat.wakes_at, now)

    async def ensure(self, ids: Sequence[TenantId]) -> None:
        """Create the missing tenants; known ones are not changed."""
        await self.define([Tenant(each) for each in ids if each not in self._tables.tenants])

    def _owners(self) -> dict[str, TenantId]:
        return {
            domain: tenant.id
            for tenant in self._tables.tenants.values()
            for domain in domains_of(tenant)
        }

    async def weigh_tier(self, tier: str, weight: float) -> None:
        """Set the weight of a tier; its tenants without a weight of their own follow at once."""
        Tenant(TenantId(""), weight=weight).check()
        now = self._tables.now()
        followers = [
            (tenant, self._tables.stride_of(tenant))
            for tenant in self._tables.tenants.values()
            if tenant.tier == tier and tenant.weight is None
        ]
        self._tables.tiers[tier] = weight
        for tenant, old_stride in followers:
            self._reseat(tenant, old_stride, now)

    async def tune(self, fairness: Fairness | None) -> None:
        """Change the fairness settings of all workers now; None goes back to the configured ones."""
        if fairness is not None:
            fairness.check()
        self._tables.tuned = fairness

    async def limit(self, kind: KindName, limit: SendLimit | None) -> None:
        """Set or lift the limit that all claims of a kind share; the same one again changes nothing."""
        if limit is not None:
            limit.check()
        if limit is None:
            self._tables.limits.pop(kind, None)
            self._tables.draws.pop(kind, None)
        else:
            self._tables.limits[kind] = limit

    async def standings(
        self, kind: KindName, *, tenants: Sequence[TenantId] | None = None
    ) -> builtins.list[Standing]:
        """The standing of each tenant with work or history of this kind, least served first."""
        now = self._tables.now()
        seats = sorted(self._tables.seats.get(kind, {}).values(), key=lambda seat: seat.order)
        seated = sum(seat.wakes_at is None for seat in seats)
        return [
            self._standing(seat, seated, now)
            for seat in seats
            if tenants is None or seat.tenant in tenants
        ]

    def _standing(self, seat: Seat, seated: int, now: int) -> Standing:
        fairness = self._tables.current_fairness()
        turn, since = self._clock(seat.kind).turn, max(seat.last_turn, seat.since_turn)
        rounds = rounds_without(turn, since, seated) if seat.wakes_at is None else 0
        in_flight = sum(job.is_leased(now) for job in seat.jobs.values())
        return Standing(
            tenant=seat.tenant,
            kind=seat.kind,
            last_processed_at=to_datetime_or_none(seat.last_processed_at),
            rounds_without_processing=rounds,
            current_priority=priority(rounds, fairness),
            total_processed=seat.processed,
            consecutive_batch_count=min(seat.consecutive, fairness.max_jobs_per_tenant_batch),
            waiting=len(seat.jobs) - in_flight,
            in_flight=in_flight,
        )

    async def erase(self, tenant: TenantId, *, limit: int = 1000) -> Erased | None:
        """Delete a tenant and all its data, in pages of messages; None if there is none."""
        found = self._tables.tenants.get(tenant)
        if found is None:
            return None
        self._define_one(replace(found, disabled=True), self._tables.now())
        return erase_tenant(self._tables, tenant, limit)

    def _clock(self, kind: KindName) -> KindClock:
        return self._tables.clocks.get(kind, KindClock())

"""What every store refuses of tenants that are to be defined: domains of others, and tiers without a weight."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from carteiro.errors import DomainClaimed, TierUnknown
from carteiro.model import Tenant, TenantId
from carteiro.policy.tenancy import domains_of


def claims_of(tenants: Sequence[Tenant]) -> dict[str, TenantId]:
    """Whose each domain is to be; `DomainClaimed` if two of them want the same one."""
    claims: dict[str, TenantId] = {}
    for tenant in {each.id: each for each in tenants}.values():
        for domain in sorted(domains_of(tenant)):
            if claims.setdefault(domain, tenant.id) != tenant.id:
                raise DomainClaimed(domain, claims[domain])
    return claims


def refuse_claimed(claims: Mapping[str, TenantId], found: Iterable[tuple[str, TenantId]]) -> None:
    """Raise `DomainClaimed` if one of the domains was ``found`` to be another's."""
    for domain, tenant in found:
        if claims[domain] != tenant:
            raise DomainClaimed(domain, tenant)


def tiers_of(tenants: Sequence[Tenant]) -> list[str]:
    """The tiers that they are to be of."""
    return sorted({tenant.tier for tenant in tenants if tenant.tier is not None})


def refuse_unknown(tiers: Sequence[str], known: Collection[str]) -> None:
    """Raise `TierUnknown` if one of the tiers is not among those that are ``known``."""
    for tier in tiers:
        if tier not in known:
            raise TierUnknown(tier)

"""Cache of the claims on sender domains."""

import time
from collections.abc import Callable, Collection, Mapping

from carteiro.errors import DomainClaimed
from carteiro.model import Tenant, TenantId
from carteiro.policy.tenancy import asked_sender, claims_over, domain_of
from carteiro.ports import Tenants
from carteiro.runtime.fresh import Fresh


class DomainCache:
    """Owners of the domains of senders, at most a few seconds old.

    A claim also covers subdomains, except those with a claim of their own: the nearest claim counts.
    """

    def __init__(self, tenants: Tenants, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tenants = tenants
        self._owners = Fresh(self._ask, clock=clock)

    async def other_owner(self, tenant: TenantId, sender: str | None) -> TenantId | None:
        """Return another tenant that claims the domain of a sender; None: no other tenant does."""
        if sender is None:
            return None
        domain = domain_of(sender)
        owner = (await self._owners.find((domain,)))[domain]
        return None if owner == tenant else owner

    async def owners(self, senders: Collection[str | None]) -> dict[str | None, TenantId | None]:
        """Return the tenant that claims the domain of each sender, None: no tenant does; all in one call."""
        domains = {each: domain_of(each) for each in senders if each is not None}
        found = await self._owners.find(set(domains.values())) if domains else {}
        return {None: None} | {sender: found[domain] for sender, domain in domains.items()}

    async def _ask(self, domains: Collection[str]) -> Mapping[str, TenantId | None]:
        claims = {domain: claims_over(domain) for domain in domains}
        names = sorted({name for each in claims.values() for name in each})
        found = dict(zip(names, await self._tenants.claimants(names), strict=True))
        return {
            domain: next((found[name] for name in over if found[name] is not None), None)
            for domain, over in claims.items()
        }


async def refuse_others_sender(tenants: Tenants, before: Tenant | None, after: Tenant) -> None:
    """Raise `DomainClaimed` if a new default From is of a domain that another tenant claims.

    An older one stays, so that the tenant can still be changed: its e-mails are refused.
    """
    sender = asked_sender(after, None)
    if sender is None or (before is not None and before.default_from == sender):
        return
    owner = await DomainCache(tenants).other_owner(after.id, sender)
    if owner is not None:
        raise DomainClaimed(domain_of(sender), str(owner))

"""Who has claimed the domains that tenants send as, remembered, so that not every e-mail asks for it."""

import time
from collections.abc import Callable, Collection
from datetime import timedelta

from carteiro.errors import DomainClaimed
from carteiro.model import Tenant, TenantId
from carteiro.policy.tenancy import asked_sender, claims_over, domain_of
from carteiro.ports import Tenants

FRESH_FOR = timedelta(seconds=5)  # so long a claim may go unseen
_FRESH_FOR_S = FRESH_FOR.total_seconds()
_MOST_REMEMBERED = 100_000


class DomainBook:
    """Knows whose the domain of a From is, a few seconds old at most.

    A claim keeps others from the domains below it, too, but for those that are claimed themselves: the
    nearest claim counts.
    """

    def __init__(self, tenants: Tenants, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tenants = tenants
        self._clock = clock
        self._known: dict[str, tuple[TenantId | None, float]] = {}

    async def owner(self, address: str) -> TenantId | None:
        """The tenant whose claim covers the domain of an address; None: it is nobody's."""
        domain = domain_of(address)
        owner, until = self._known.get(domain, (None, 0.0))
        if self._clock() >= until:
            await self._ask([domain])
            owner, _ = self._known[domain]
        return owner

    async def look_up(self, addresses: Collection[str]) -> None:
        """Ask for all that are not known in one go, so that `owner` finds them known."""
        now = self._clock()
        domains = {domain_of(each) for each in addresses}
        unknown = [each for each in domains if self._known.get(each, (None, 0.0))[1] <= now]
        if unknown:
            await self._ask(unknown)

    async def _ask(self, domains: Collection[str]) -> None:
        claims = {domain: claims_over(domain) for domain in domains}
        names = sorted({name for each in claims.values() for name in each})
        found = dict(zip(names, await self._tenants.claimants(names), strict=True))
        if len(self._known) + len(claims) > _MOST_REMEMBERED:
            self._known.clear()
        until = self._clock() + _FRESH_FOR_S
        for domain, over in claims.items():
            owner = next((found[name] for name in over if found[name] is not None), None)
            self._known[domain] = (owner, until)


async def refuse_others_sender(tenants: Tenants, before: Tenant | None, after: Tenant) -> None:
    """Raise `DomainClaimed` if a new default From is of a domain that another tenant has claimed.

    One that was there before the claim stays, so that the tenant can still be changed: it is refused when it sends.
    """
    sender = asked_sender(after, None)
    if sender is None or (before is not None and before.default_from == sender):
        return
    owner = await DomainBook(tenants).owner(sender)
    if owner not in {None, after.id}:
        raise DomainClaimed(domain_of(sender), str(owner))

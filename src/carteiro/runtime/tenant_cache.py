"""The tenants that this process sends for, remembered, so that not every e-mail asks for its tenant."""

import time
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta

from carteiro.model import Tenant, TenantId
from carteiro.ports import Tenants

FRESH_FOR = timedelta(seconds=5)  # so long a change may go unseen
_FRESH_FOR_S = FRESH_FOR.total_seconds()
_MOST_REMEMBERED = 100_000


class TenantBook:
    """Knows tenants and their settings, a few seconds old at most; makes those that are missing."""

    def __init__(self, tenants: Tenants, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tenants = tenants
        self._clock = clock
        self._known: dict[TenantId, tuple[Tenant, float]] = {}

    async def settings(self, ids: Collection[TenantId]) -> Mapping[TenantId, Tenant]:
        """The settings of tenants; one that is not there yet has the defaults."""
        now = self._clock()
        settings = {each: self._known[each][0] for each in ids if self._is_fresh(each, now)}
        asked = [each for each in ids if each not in settings]
        found = await self._tenants.find(asked) if asked else []
        for identity, tenant in zip(asked, found, strict=True):
            settings[identity] = tenant or Tenant(identity)
            if tenant is None:
                self.forget(identity)
            else:
                self._remember(tenant, now + _FRESH_FOR_S)
        return settings

    async def ensure(self, ids: Collection[TenantId]) -> None:
        """Create the tenants that are missing."""
        unseen = sorted(each for each in ids if each not in self._known)
        if unseen:
            await self._tenants.ensure(unseen)
            stale = self._clock()  # it is there; what it is like is asked when it is needed
            for each in unseen:
                self._remember(Tenant(each), stale)

    def forget(self, tenant: TenantId) -> None:
        """It is gone: the next who needs it makes it anew."""
        self._known.pop(tenant, None)

    def _is_fresh(self, tenant: TenantId, now: float) -> bool:
        return tenant in self._known and now < self._known[tenant][1]

    def _remember(self, tenant: Tenant, until: float) -> None:
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[tenant.id] = (tenant, until)

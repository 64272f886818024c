"""Cache of the tenants that this process sends for."""

import time
from collections.abc import Callable, Collection, Mapping

from carteiro.model import Tenant, TenantId
from carteiro.ports import Tenants
from carteiro.runtime.fresh import MOST_REMEMBERED, Fresh


class TenantCache:
    """Tenants and their settings, at most a few seconds old; creates missing ones."""

    def __init__(self, tenants: Tenants, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tenants = tenants
        self._known = Fresh(self._find, clock=clock)
        self._seen: set[TenantId] = set()  # these exist; their settings may have changed

    async def settings(self, ids: Collection[TenantId]) -> Mapping[TenantId, Tenant]:
        """Return the settings of tenants; one that does not exist yet has the defaults."""
        found = await self._known.find(ids)
        return found if len(found) == len(ids) else {each: Tenant(each) for each in ids} | found

    async def ensure(self, ids: set[TenantId]) -> None:
        """Create the tenants that are missing."""
        if unseen := sorted(ids - self._seen):
            await self._tenants.ensure(unseen)
            self._see(unseen)

    def forget(self, tenant: TenantId) -> None:
        """Forget a deleted tenant: the next e-mail that needs it creates it again."""
        self._known.forget(tenant)
        self._seen.discard(tenant)

    async def _find(self, ids: Collection[TenantId]) -> Mapping[TenantId, Tenant]:
        found = await self._tenants.find([*ids])
        self._seen.difference_update(ids)
        self._see([each.id for each in found if each is not None])
        return {each.id: each for each in found if each is not None}

    def _see(self, ids: Collection[TenantId]) -> None:
        if len(self._seen) + len(ids) > MOST_REMEMBERED:
            self._seen.clear()
        self._seen.update(ids)

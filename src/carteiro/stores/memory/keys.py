"""Which key opens what, in memory."""

import builtins
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from uuid_utils import uuid7

from carteiro.model import MOST_LIVE_KEYS, Key, KeyId, TenantId, TenantUnknown, TooManyKeys
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.stores.memory.tables import Tables, to_datetime


class MemoryKeys:
    """The `Keys` port on a plain dict."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def add(
        self,
        tenant: TenantId | None,
        *,
        key_hash: str,
        hint: str,
        expires_in: timedelta | None = None,
    ) -> Key | TooManyKeys | TenantUnknown:
        """Let the key with this hash speak for the tenant; a known one stays as it is."""
        if tenant is not None and tenant not in self._tables.tenants:
            return TenantUnknown(tenant)
        if key_hash in self._tables.keys:
            return self._tables.keys[key_hash]
        live = tuple(key.id for key in await self.list(tenant) if self._is_live(key))
        if len(live) >= MOST_LIVE_KEYS:
            return TooManyKeys(live)
        now = self._tables.now()
        ends = None if expires_in is None else to_datetime(now + expires_in // MILLISECOND)
        key = Key(KeyId(str(uuid7())), tenant, hint, to_datetime(now), ends)
        self._tables.keys[key_hash] = key
        return key

    async def holder(self, key_hash: str) -> Key | None:
        """The live key with this hash."""
        key = self._tables.keys.get(key_hash)
        return key if key is not None and self._is_live(key) and self._opens(key) else None

    async def list(self, tenant: TenantId | None) -> builtins.list[Key]:
        """The keys of a tenant, newest first, those that ended included."""
        keys = [key for key in self._tables.keys.values() if key.tenant == tenant]
        return sorted(keys, key=lambda key: (key.created_at, key.id), reverse=True)

    async def revoke(self, ids: Sequence[KeyId], *, tenant: TenantId | None) -> builtins.list[bool]:
        """End keys of this tenant now; False where there is no such live key."""
        return [self._revoke_one(each, tenant) for each in ids]

    def _revoke_one(self, wanted: KeyId, tenant: TenantId | None) -> bool:
        for key_hash, key in self._tables.keys.items():
            if (key.id, key.tenant) == (wanted, tenant) and self._is_live(key):
                now = to_datetime(self._tables.now())
                self._tables.keys[key_hash] = replace(key, revoked_at=now)
                return True
        return False

    async def used(self, ids: Sequence[KeyId]) -> None:
        """Note that these keys were used just now."""
        now = to_datetime(self._tables.now())
        for key_hash, key in self._tables.keys.items():
            if key.id in ids:
                self._tables.keys[key_hash] = replace(key, last_used_at=now)

    def _is_live(self, key: Key) -> bool:
        now = to_datetime(self._tables.now())
        return key.revoked_at is None and (key.expires_at is None or key.expires_at > now)

    def _opens(self, key: Key) -> bool:
        """An administrator's opens; a tenant's opens while its tenant is there and not disabled."""
        if key.tenant is None:
            return True
        tenant = self._tables.tenants.get(key.tenant)
        return tenant is not None and not tenant.disabled

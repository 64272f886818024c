"""Access keys."""

import builtins
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from carteiro.model import Key, KeyId, TenantId, TenantUnknown, TooManyKeys


class Keys(Protocol):
    """Keys of tenants and of administrators (tenant None), stored only as hashes.

    Promises, one module each in ``tests/contract/keys``:

    keyed    The hash of a key identifies its tenant; the key itself is never stored.
    ended    A key does not work once it expired or was revoked, or its tenant is disabled or gone.
    few      A tenant has at most `MOST_LIVE_KEYS` live keys, also with concurrent requests.
    """

    async def add(
        self,
        tenant: TenantId | None,
        *,
        key_hash: str,
        hint: str,
        expires_in: timedelta | None = None,
    ) -> Key | TooManyKeys | TenantUnknown:
        """Add the key with this hash to the tenant."""

    async def holder(self, key_hash: str) -> Key | None:
        """The live key with this hash."""

    async def list(self, tenant: TenantId | None) -> builtins.list[Key]:
        """The keys of a tenant, newest first, including those that ended."""

    async def revoke(self, ids: Sequence[KeyId], *, tenant: TenantId | None) -> builtins.list[bool]:
        """End keys of this tenant now; False for a key that is not live or not the tenant's."""

    async def used(self, ids: Sequence[KeyId]) -> None:
        """Record that these keys were just used."""

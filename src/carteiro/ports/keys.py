"""Which key opens what."""

import builtins
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from carteiro.model import Key, KeyId, TenantId, TenantUnknown, TooManyKeys


class Keys(Protocol):
    """Keys of tenants and of administrators (tenant None), known by their hash alone.

    Promises, one module each in ``tests/contract/keys``:

    keyed    A key names its tenant by its hash; the key itself is never stored.
    ended    A key that expired or was revoked, or whose tenant is disabled or gone, opens nothing.
    few      A tenant has at most `MOST_LIVE_KEYS` live keys, however many are asked for at once.
    """

    async def add(
        self,
        tenant: TenantId | None,
        *,
        key_hash: str,
        hint: str,
        expires_in: timedelta | None = None,
    ) -> Key | TooManyKeys | TenantUnknown:
        """Let the key with this hash speak for the tenant."""
        ...

    async def holder(self, key_hash: str) -> Key | None:
        """The live key with this hash."""
        ...

    async def list(self, tenant: TenantId | None) -> builtins.list[Key]:
        """The keys of a tenant, newest first, those that ended included."""
        ...

    async def revoke(self, ids: Sequence[KeyId], *, tenant: TenantId | None) -> builtins.list[bool]:
        """End keys of this tenant now; False where there is no such live key."""
        ...

    async def used(self, ids: Sequence[KeyId]) -> None:
        """Note that these keys were used just now."""
        ...

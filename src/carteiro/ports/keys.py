"""Access keys."""

import builtins
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol, TypeAlias

from carteiro.model import Key, KeyId, NameTaken, Role, TenantId, TenantUnknown, TooManyKeys

AddedKey: TypeAlias = Key | TooManyKeys | NameTaken | TenantUnknown


class Keys(Protocol):
    """Keys of tenants, and tokens of administrators, which have a role and may be limited to one tenant.

    They are stored only as hashes. In `list` and `revoke`, tenant None stands for all tokens.

    Promises, one module each in ``tests/contract/keys``:

    keyed    The hash of a key identifies its tenant; the key itself is never stored.
    ended    A key does not work once it expired or was revoked, or its tenant is disabled or gone.
    few      A tenant, and each name of a token, has at most `MOST_LIVE_KEYS` live keys, also with concurrent requests.
             Of ended ones, the `MOST_ENDED_KEYS` newest are kept.
    named    Live tokens of one name have one role and one tenant, also with concurrent requests.
    """

    async def add(  # noqa: PLR0913 - what a key has
        self,
        tenant: TenantId | None,
        *,
        key_hash: str,
        hint: str,
        expires_in: timedelta | None = None,
        name: str = "",
        role: Role | None = None,
    ) -> AddedKey:
        """Add the key with this hash to the tenant; with a role, a token of administrators."""

    async def holder(self, key_hash: str) -> Key | None:
        """The live key with this hash."""

    async def list(self, tenant: TenantId | None) -> builtins.list[Key]:
        """The keys of a tenant, newest first, including the newest of those that ended."""

    async def revoke(self, ids: Sequence[KeyId], *, tenant: TenantId | None) -> builtins.list[bool]:
        """End keys of this tenant now; False for a key that is not live or not the tenant's."""

    async def used(self, ids: Sequence[KeyId]) -> None:
        """Record that these keys were just used."""

"""Whom tenants must not write to."""

from collections.abc import Sequence
from typing import Protocol

from carteiro.model import (
    Cursor,
    NewSuppression,
    Page,
    StorageLimit,
    Suppression,
    TenantId,
    TenantUnknown,
)


class Suppressions(Protocol):
    """Addresses that a tenant must not write to; each reason of an address is kept apart.

    Promises, one module each in ``tests/contract/suppressions``:

    few       What is put with ``most`` leaves a tenant with no more records than that, whoever puts at the same time.
    faithful  What was put is found by any spelling of the address, by its own tenant alone, until it expires.
    counted   Soft bounces suppress when there are enough of them in the window, in whatever order they are told.
    listed    Pages follow each other without a gap or a twin.
    heeded    A claim says which addresses of an e-mail are suppressed.
    erased    Of an erased recipient the hash of its address stays suppressed; of an erased tenant, nothing.
    """

    async def put(
        self, new: Sequence[NewSuppression], *, tenant: TenantId, most: int | None = None
    ) -> int | StorageLimit | TenantUnknown:
        """Suppress addresses, or count their soft bounces; how many records were written.

        With ``most``: all of them, or none if the tenant then had more records. What is over counts
        until it is pruned.
        """
        ...

    async def remove(self, addresses: Sequence[str], *, tenant: TenantId) -> int:
        """Write to these again, whatever the reason was; how many records went."""
        ...

    async def find(self, addresses: Sequence[str], *, tenant: TenantId) -> Sequence[str]:
        """Those of the addresses, as they are given, that must not be written to now."""
        ...

    async def list(
        self,
        tenant: TenantId,
        *,
        email: str | None = None,
        cursor: Cursor | None = None,
        limit: int = 100,
    ) -> Page[Suppression]:
        """What is on record, newest first, soft bounces that are merely counted included."""
        ...

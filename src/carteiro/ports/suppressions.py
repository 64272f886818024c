"""Addresses that tenants must not send to."""

from collections.abc import Sequence
from typing import Protocol

from carteiro import model


class Suppressions(Protocol):
    """Suppressed addresses of a tenant; each reason of an address is a separate record.

    Promises, one module each in ``tests/contract/suppressions``:

    few       A `put` with ``most`` leaves a tenant with at most that many records, also with concurrent calls.
    faithful  A suppression is found by any spelling of the address, only by its own tenant, until it expires.
    counted   Soft bounces suppress once there are enough of them in the window, reported in any order.
    listed    Pages have no gaps and no duplicates.
    heeded    A claim returns the suppressed addresses of an e-mail.
    erased    The hash of an erased recipient's address stays suppressed; nothing of an erased tenant is left.
    """

    async def put(
        self,
        new: Sequence[model.NewSuppression],
        *,
        tenant: model.TenantId,
        most: int | None = None,
    ) -> int | model.StorageLimit | model.TenantUnknown:
        """Suppress addresses, or count their soft bounces; return the number of records written.

        With ``most``: all of them, or none if the tenant then had more records. Expired records count
        until they are pruned.
        """

    async def remove(self, addresses: Sequence[str], *, tenant: model.TenantId) -> int:
        """Allow these addresses again, for all reasons; return the number of deleted records."""

    async def find(self, addresses: Sequence[str], *, tenant: model.TenantId) -> Sequence[str]:
        """The suppressed ones of these addresses, in the given spelling."""

    async def list(
        self,
        tenant: model.TenantId,
        *,
        email: str | None = None,
        cursor: model.Cursor | None = None,
        limit: int = 100,
    ) -> model.Page[model.Suppression]:
        """The records, newest first, including soft bounces that are only counted."""

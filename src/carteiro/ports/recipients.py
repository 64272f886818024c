"""Recipients of the tenants."""

from typing import Protocol

from carteiro.model import Cursor, Erased, Page, Recipient, RecipientId, TenantId


class Recipients(Protocol):
    """Recipients of a tenant; created and changed only by `Store.accept`.

    Promises, one module each in ``tests/contract/recipients``:

    faithful  A recipient is read as it was last accepted, only by its own tenant.
    listed    Pages have no gaps and no duplicates, also with concurrent additions.
    deleted   A deleted recipient is kept, with the time of deletion; messages to it fail.
    erased    Nothing personal of an erased recipient is left: address, names, ids, subject, content, events.
    """

    async def show(self, recipient: RecipientId, *, tenant: TenantId) -> Recipient | None:
        """One recipient of a tenant, deleted or not."""

    async def list(
        self,
        tenant: TenantId,
        *,
        external_id: str | None = None,
        email: str | None = None,
        cursor: Cursor | None = None,
        limit: int = 100,
    ) -> Page[Recipient]:
        """Matching recipients, newest first, including deleted ones."""

    async def delete(self, recipient: RecipientId, *, tenant: TenantId) -> bool:
        """Mark as deleted; False if unknown or deleted already."""

    async def erase(
        self, recipient: RecipientId, *, tenant: TenantId, limit: int = 1000
    ) -> Erased | None:
        """Delete all personal data, in pages of messages; None if there is no such recipient.

        Messages keep their id, state and times. Waiting ones are cancelled first; one in flight is marked
        to be cancelled, and erased after it has ended (``has_more``).
        """

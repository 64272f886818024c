"""Who tenants write to."""

from typing import Protocol

from carteiro.model import Cursor, Erased, Page, Recipient, RecipientId, TenantId


class Recipients(Protocol):
    """Recipients of a tenant; made and changed by `Store.accept` alone.

    Promises, one module each in ``tests/contract/recipients``:

    faithful  A recipient is read as it was last told, by its own tenant alone.
    listed    Pages follow each other without a gap or a twin, whatever is added meanwhile.
    deleted   A deleted recipient stays, with its time; what is to be sent to it fails.
    erased    Nothing personal of an erased recipient is left: address, names, ids, subject, content, events.
    """

    async def show(self, recipient: RecipientId, *, tenant: TenantId) -> Recipient | None:
        """One recipient of a tenant, deleted or not."""
        ...

    async def list(
        self,
        tenant: TenantId,
        *,
        external_id: str | None = None,
        email: str | None = None,
        cursor: Cursor | None = None,
        limit: int = 100,
    ) -> Page[Recipient]:
        """Recipients that match, newest first; deleted ones included."""
        ...

    async def delete(self, recipient: RecipientId, *, tenant: TenantId) -> bool:
        """Mark as deleted; False if there is none, or it is deleted already."""
        ...

    async def erase(
        self, recipient: RecipientId, *, tenant: TenantId, limit: int = 1000
    ) -> Erased | None:
        """Take everything personal away, in pages of messages; None if there is no such recipient.

        Messages keep their id, state and times. Unfinished ones that wait are cancelled first; one
        that is in flight is marked to be cancelled, and erased when it has ended (``has_more``).
        """
        ...

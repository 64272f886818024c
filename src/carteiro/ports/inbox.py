"""Storage of the mails that the sandbox took."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from carteiro.model import (
    Cursor,
    InboxEntry,
    InboxFilter,
    InboxMail,
    MessageId,
    Page,
    TenantId,
)


class Letterbox(Protocol):
    """The part of an `Inbox` that a provider needs."""

    async def keep(self, mails: Sequence[InboxMail]) -> None:
        """Store the mails: this is the sandbox's hand-over."""


class Inbox(Letterbox, Protocol):
    """A local mailbox in the store.

    Promises, one module each in ``tests/contract/inbox``:

    keeps    Each `keep` is one delivery, durably.
    finds    `find` shows every mail that matches once, newest first, and no other tenant's.
    deletes  What is deleted is found no more; nothing else is touched.
    notices  `newest` tells of a delivery by any process.
    """

    async def list(
        self, *, message: MessageId | None = None, tenant: TenantId | None = None, limit: int = 100
    ) -> list[InboxMail]:
        """The newest mails with their contents, of all or of one message; ``tenant``: only if they are its own."""

    async def find(
        self, wanted: InboxFilter, *, cursor: Cursor | None = None, limit: int = 100
    ) -> Page[InboxEntry]:
        """Matching mails, newest first. Looks at a thousand mails for one page: it may be short, or empty.

        The cursor of a tenant's list is not one of the list of all.
        """

    async def newest(self, tenants: Collection[TenantId]) -> Mapping[TenantId, datetime]:
        """The time of the newest mail of each tenant that has any: cheap, to ask for news often."""

    async def delete(self, message: MessageId, *, tenant: TenantId) -> int:
        """Delete the deliveries of a tenant's message; return their number."""

    async def empty(self, tenant: TenantId, *, limit: int = 1000) -> int:
        """Delete mails of a tenant, at most ``limit``; return their number."""

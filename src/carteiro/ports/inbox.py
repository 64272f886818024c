"""Storage of the mails that the sandbox took."""

from collections.abc import Sequence
from typing import Protocol

from carteiro.model import InboxMail, MessageId, TenantId


class Inbox(Protocol):
    """A local mailbox in the store; promise in ``tests/contract/inbox``: each `keep` is one delivery, durably."""

    async def keep(self, mails: Sequence[InboxMail]) -> None:
        """Store the mails: this is the sandbox's hand-over."""

    async def list(
        self, *, message: MessageId | None = None, tenant: TenantId | None = None, limit: int = 100
    ) -> list[InboxMail]:
        """The newest mails, of all, one message or one tenant."""

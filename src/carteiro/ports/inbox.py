"""Where the sandbox keeps what it sent."""

from collections.abc import Sequence
from typing import Protocol

from carteiro.model import InboxMail, MessageId, TenantId


class Inbox(Protocol):
    """A local mailbox in the store; promise in ``tests/contract/inbox``: each `keep` is one delivery, durably."""

    async def keep(self, mails: Sequence[InboxMail]) -> None:
        """Take the mails over: this is the sandbox's hand-over."""
        ...

    async def list(
        self, *, message: MessageId | None = None, tenant: TenantId | None = None, limit: int = 100
    ) -> list[InboxMail]:
        """The newest mails, of everybody, one message or one tenant."""
        ...

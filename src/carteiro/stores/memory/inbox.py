"""Where the sandbox keeps what it sent, in memory."""

import builtins
from collections.abc import Sequence
from dataclasses import replace

from carteiro.model import InboxMail, MessageId, TenantId
from carteiro.stores.memory.tables import Tables, to_datetime


class MemoryInbox:
    """The `Inbox` port on a plain list."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def keep(self, mails: Sequence[InboxMail]) -> None:
        """Take the mails over: this is the sandbox's hand-over."""
        at = to_datetime(self._tables.now())
        self._tables.mails.extend(replace(mail, at=at) for mail in mails)

    async def list(
        self, *, message: MessageId | None = None, tenant: TenantId | None = None, limit: int = 100
    ) -> builtins.list[InboxMail]:
        """The newest mails, of everybody, one message or one tenant."""
        newest = reversed(self._tables.mails)
        wanted = (mail for mail in newest if message in {None, mail.message})
        return [mail for mail in wanted if tenant in {None, mail.tenant}][:limit]

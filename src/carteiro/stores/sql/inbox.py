"""The sandbox's inbox."""

from collections.abc import Sequence

from carteiro.model import InboxMail, MessageId, TenantId
from carteiro.stores.columns import made
from carteiro.stores.sql.session import Database


class SqlInbox:
    """See `carteiro.ports.inbox.Inbox` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def keep(self, mails: Sequence[InboxMail]) -> None:
        """Store the mails: this is the sandbox's hand-over."""
        rows = [(m.message, m.tenant, m.to, m.subject, m.content, m.provider_id) for m in mails]
        await self._db.run("inbox_keep", rows=rows, now=self._db.fixed_now)

    async def list(
        self, *, message: MessageId | None = None, tenant: TenantId | None = None, limit: int = 100
    ) -> list[InboxMail]:
        """The newest mails, of all, one message or one tenant."""
        operation = "inbox_list" if tenant is None else "inbox_list_of_tenant"
        if message is not None:
            operation = "inbox_list_of_message"
        rows = await self._db.fetch(operation, message=message, tenant=tenant, limit=limit)
        mails = [made(InboxMail, row) for row in rows]
        return [mail for mail in mails if tenant in {None, mail.tenant}]

"""The sandbox's inbox on Postgres."""

from collections.abc import Sequence

from carteiro.model import InboxMail, MessageId, TenantId
from carteiro.stores.postgres.database import Database
from carteiro.stores.tenant_columns import mail_of


class PostgresInbox:
    """See `carteiro.ports.inbox.Inbox` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def keep(self, mails: Sequence[InboxMail]) -> None:
        """Take the mails over: this is the sandbox's hand-over."""
        await self._db.fetch(
            "inbox_keep",
            [mail.message for mail in mails],
            [mail.tenant for mail in mails],
            [mail.to for mail in mails],
            [mail.subject for mail in mails],
            [mail.content for mail in mails],
            [mail.provider_id for mail in mails],
            self._db.fixed_now,
        )

    async def list(
        self, *, message: MessageId | None = None, tenant: TenantId | None = None, limit: int = 100
    ) -> list[InboxMail]:
        """The newest mails, of everybody, one message or one tenant."""
        if message is not None:
            rows = await self._db.fetch("inbox_list_of_message", message, limit)
        elif tenant is not None:
            rows = await self._db.fetch("inbox_list_of_tenant", tenant, limit)
        else:
            rows = await self._db.fetch("inbox_list", limit)
        mails = [mail_of(row) for row in rows]
        return [mail for mail in mails if tenant in {None, mail.tenant}]

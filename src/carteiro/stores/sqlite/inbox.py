"""The sandbox's inbox on SQLite."""

import sqlite3
from collections.abc import Callable, Sequence

from carteiro.model import InboxMail, MessageId, TenantId
from carteiro.stores.sqlite.reading import Reader
from carteiro.stores.sqlite.rows import as_json, run
from carteiro.stores.sqlite.writer import Writer
from carteiro.stores.tenant_columns import mail_of


class SqliteInbox:
    """See `carteiro.ports.inbox.Inbox` for what it promises."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    async def keep(self, mails: Sequence[InboxMail]) -> None:
        """Take the mails over: this is the sandbox's hand-over."""
        rows = as_json(
            [(m.message, m.tenant, m.to, m.subject, m.content, m.provider_id) for m in mails]
        )
        await self._writer.do(lambda db: run(db, "inbox_keep", rows=rows, now=self._clock()))

    async def list(
        self, *, message: MessageId | None = None, tenant: TenantId | None = None, limit: int = 100
    ) -> list[InboxMail]:
        """The newest mails, of everybody, one message or one tenant."""
        mails = await self._reader.ask(lambda db: _mails(db, message, tenant, limit))
        return [mail for mail in mails if tenant in {None, mail.tenant}]


def _mails(
    db: sqlite3.Connection, message: MessageId | None, tenant: TenantId | None, limit: int
) -> list[InboxMail]:
    if message is not None:
        rows = run(db, "inbox_list_of_message", message=message, limit=limit)
    elif tenant is not None:
        rows = run(db, "inbox_list_of_tenant", tenant=tenant, limit=limit)
    else:
        rows = run(db, "inbox_list", limit=limit)
    return [mail_of(row) for row in rows]

"""The sandbox's inbox on SQLite."""

from collections.abc import Callable, Sequence

from carteiro.model import InboxMail, MessageId
from carteiro.stores.sqlite.reading import Reader
from carteiro.stores.sqlite.rows import as_json, moment, run
from carteiro.stores.sqlite.writer import Writer


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

    async def list(self, *, message: MessageId | None = None, limit: int = 100) -> list[InboxMail]:
        """The newest mails, or all deliveries of one message."""
        rows = await self._reader.ask(
            lambda db: run(db, "inbox_list", message=message, limit=limit).fetchall()
        )
        return [
            InboxMail(message, tenant, to, subject, content, provider_id, moment(at))
            for message, tenant, to, subject, content, provider_id, at in rows
        ]

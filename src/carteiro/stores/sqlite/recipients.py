"""Who tenants write to, on SQLite."""

import sqlite3
from collections.abc import Sequence

from carteiro.model import Cursor, Erased, MessageId, Page, Recipient, RecipientId, TenantId
from carteiro.stores.columns import in_ms, recipient_of
from carteiro.stores.cursors import FAR, cursor_at, key_of
from carteiro.stores.sqlite.erasing import erase_recipient
from carteiro.stores.sqlite.opening import empty_log
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.reading import Reader
from carteiro.stores.sqlite.rows import run
from carteiro.stores.sqlite.wake import SqliteWake
from carteiro.stores.sqlite.writer import Writer


class SqliteRecipients:
    """See `carteiro.ports.recipients.Recipients` for what it promises."""

    def __init__(
        self, writer: Writer, reader: Reader, wake: SqliteWake, options: SqliteOptions
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._wake = wake
        self._clock = options.clock
        self._has_queue = options.has_queue

    async def show(self, recipient: RecipientId, *, tenant: TenantId) -> Recipient | None:
        """One recipient of a tenant, deleted or not."""
        row = await self._reader.ask(
            lambda db: run(db, "recipient", id=recipient, tenant=tenant).fetchone()
        )
        return None if row is None else recipient_of(row)

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
        at, place = key_of(cursor, (FAR, ""))
        named = {"external_id": external_id, "email": email}
        operation, wanted = "recipients_list", {}
        if email is not None:
            operation, wanted = "recipients_list_by_email", named
        elif external_id is not None:
            operation, wanted = "recipients_list_by_external_id", {"external_id": external_id}
        rows = await self._reader.ask(
            lambda db: run(
                db, operation, tenant=tenant, at=at, id=place, limit=limit + 1, **wanted
            ).fetchall()
        )
        found = [recipient_of(row) for row in rows[:limit]]
        return Page(found, _cursor_of(found[-1]) if len(rows) > limit else None)

    async def delete(self, recipient: RecipientId, *, tenant: TenantId) -> bool:
        """Mark as deleted; False if there is none, or it is deleted already."""
        marked = await self._writer.do(
            lambda db: (
                run(db, "recipient_delete", id=recipient, tenant=tenant, now=self._clock()).rowcount
            )
        )
        return marked > 0

    async def erase(
        self, recipient: RecipientId, *, tenant: TenantId, limit: int = 1000
    ) -> Erased | None:
        """Take everything personal away, in pages of messages; None if there is no such recipient."""
        found = await self.show(recipient, tenant=tenant)
        if found is None:
            return None
        # Where jobs are kept elsewhere, whoever keeps them has cancelled what waits before.
        waiting = (
            await self._reader.ask(lambda db: waiting_for(db, found, limit))
            if self._has_queue
            else []
        )
        erased, has_work = await self._writer.do(
            lambda db: erase_recipient(db, found, waiting, now=self._clock(), limit=limit)
        )
        if has_work:
            self._wake.ring()
        if not erased.has_more:
            await self._reader.ask(empty_log)
        return erased


def waiting_for(db: sqlite3.Connection, recipient: Recipient, limit: int) -> Sequence[MessageId]:
    """What is to be cancelled. Looked for beside the writer: a recipient may have many finished messages."""
    mine = {"recipient": recipient.id, "tenant": recipient.tenant, "email": recipient.email}
    return [row[0] for row in run(db, "erase_waiting", limit=limit, **mine)]


def _cursor_of(recipient: Recipient) -> Cursor:
    return cursor_at(in_ms(recipient.created_at), recipient.id)

"""Who tenants write to, on Postgres."""

from carteiro.model import Cursor, Erased, Page, Recipient, RecipientId, TenantId
from carteiro.stores.columns import in_ms, recipient_of
from carteiro.stores.cursors import FAR, cursor_at, key_of
from carteiro.stores.postgres.database import Database
from carteiro.stores.postgres.erasing import erase_recipient
from carteiro.stores.postgres.wake import PostgresWake


class PostgresRecipients:
    """See `carteiro.ports.recipients.Recipients` for what it promises."""

    def __init__(self, db: Database, wake: PostgresWake) -> None:
        self._db = db
        self._wake = wake

    async def show(self, recipient: RecipientId, *, tenant: TenantId) -> Recipient | None:
        """One recipient of a tenant, deleted or not."""
        row = await self._db.first("recipient", recipient, tenant)
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
        after = (tenant, at, place, limit + 1)
        if email is not None:
            rows = await self._db.fetch("recipients_list_by_email", *after, email, external_id)
        elif external_id is not None:
            rows = await self._db.fetch("recipients_list_by_external_id", *after, external_id)
        else:
            rows = await self._db.fetch("recipients_list", *after)
        found = [recipient_of(row) for row in rows[:limit]]
        return Page(found, _cursor_of(found[-1]) if len(rows) > limit else None)

    async def delete(self, recipient: RecipientId, *, tenant: TenantId) -> bool:
        """Mark as deleted; False if there is none, or it is deleted already."""
        now = await self._db.now()
        return await self._db.value("recipient_delete", recipient, tenant, now) is not None

    async def erase(
        self, recipient: RecipientId, *, tenant: TenantId, limit: int = 1000
    ) -> Erased | None:
        """Take everything personal away, in pages of messages; None if there is no such recipient."""
        now = await self._db.now()
        row = await self._db.first("recipient_take", recipient, tenant, now)
        if row is None:
            return None
        erased, has_work = await erase_recipient(self._db, recipient_of(row), now=now, limit=limit)
        if has_work:
            await self._wake.tell()
        return erased


def _cursor_of(recipient: Recipient) -> Cursor:
    return cursor_at(in_ms(recipient.created_at), recipient.id)

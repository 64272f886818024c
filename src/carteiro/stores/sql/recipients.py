"""Recipients of tenants."""

from carteiro.model import Cursor, Page, Recipient, RecipientId, TenantId
from carteiro.stores.columns import in_ms, recipient_of
from carteiro.stores.cursors import FAR, cursor_at, key_of
from carteiro.stores.sql.audit import Noted, note
from carteiro.stores.sql.erasing import SqlErasing
from carteiro.stores.sql.session import Database, Session


class SqlRecipients:
    """See `carteiro.ports.recipients.Recipients` for what it promises."""

    def __init__(self, db: Database, erasing: SqlErasing) -> None:
        self._db = db
        self.erase = erasing.recipient

    async def show(self, recipient: RecipientId, *, tenant: TenantId) -> Recipient | None:
        """One recipient of a tenant, deleted or not."""
        row = await self._db.first("recipient", id=recipient, tenant=tenant)
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
        """Matching recipients, newest first, including deleted ones."""
        at, place = key_of(cursor, (FAR, ""))
        operation = "recipients_list"
        if email is not None:
            operation = "recipients_list_by_email"
        elif external_id is not None:
            operation = "recipients_list_by_external_id"
        rows = await self._db.fetch(
            operation,
            tenant=tenant,
            external_id=external_id,
            email=email,
            at=at,
            id=place,
            limit=limit + 1,
        )
        found = [recipient_of(row) for row in rows[:limit]]
        return Page(found, _cursor_of(found[-1]) if len(rows) > limit else None)

    async def delete(self, recipient: RecipientId, *, tenant: TenantId) -> bool:
        """Mark as deleted; False if unknown or deleted already."""
        now = await self._db.now()

        async def delete(session: Session) -> bool:
            asked = {"id": recipient, "tenant": tenant, "now": now}
            is_done = await session.run("recipient_delete", **asked) > 0
            if is_done:
                await note(session, now, Noted("delete", "recipient", recipient, tenant))
            return is_done

        return await self._db.write(delete)


def _cursor_of(recipient: Recipient) -> Cursor:
    return cursor_at(in_ms(recipient.created_at), recipient.id)

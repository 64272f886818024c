"""The sandbox's inbox."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from carteiro.model import (
    Cursor,
    InboxEntry,
    InboxFilter,
    InboxMail,
    MessageId,
    Page,
    TenantId,
)
from carteiro.policy.inbox import is_wanted
from carteiro.stores.columns import in_ms, made, moment
from carteiro.stores.cursors import FAR, cursor_at, key_of
from carteiro.stores.sql.audit import Noted, note
from carteiro.stores.sql.session import Database, Session

MOST_LOOKED: Final = 1000  # mails that one page of a filtered list looks at


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
        """The newest mails with their contents, of all or of one message; ``tenant``: only if they are its own."""
        operation = "inbox_list" if message is None else "inbox_list_of_message"
        rows = await self._db.fetch(operation, message=message, limit=limit)
        mails = [made(InboxMail, row) for row in rows]
        return [mail for mail in mails if tenant in {None, mail.tenant}]

    async def find(
        self, wanted: InboxFilter, *, cursor: Cursor | None = None, limit: int = 100
    ) -> Page[InboxEntry]:
        """Matching mails, newest first. Looks at a thousand mails for one page: it may be short, or empty."""
        # Texts are compared here: the databases have different ideas of upper and lower case.
        most = limit + 1 if _is_whole_list(wanted) else max(limit + 1, MOST_LOOKED)
        rows = await self._looked_at(wanted, cursor, most)
        entries = [(made(InboxEntry, row[:-1]), row[-1]) for row in rows]
        found = [each for each in entries if is_wanted(each[0], wanted)]
        following = None
        if wanted.message is not None:
            found = found[:limit]
        elif len(found) > limit:
            found = found[:limit]
            following = _cursor_of(wanted, *found[-1])
        elif len(entries) == most and not _is_past(entries[-1][0], wanted):
            following = _cursor_of(wanted, *entries[-1])
        return Page([entry for entry, _ in found], following)

    async def newest(self, tenants: Collection[TenantId]) -> Mapping[TenantId, datetime]:
        """The time of the newest mail of each tenant that has any: cheap, to ask for news often."""
        rows = await self._db.fetch("inbox_newest", tenants=[*tenants])
        return {TenantId(tenant): moment(at) for tenant, at in rows if at is not None}

    async def delete(self, message: MessageId, *, tenant: TenantId) -> int:
        """Delete the deliveries of a tenant's message; return their number."""
        return await self._delete("inbox_delete", tenant, message=message)

    async def empty(self, tenant: TenantId, *, limit: int = 1000) -> int:
        """Delete mails of a tenant, at most ``limit``; return their number."""
        return await self._delete("inbox_empty", tenant, limit=limit)

    async def _delete(self, statement: str, tenant: TenantId, **which: object) -> int:
        now = await self._db.now()

        async def delete(session: Session) -> int:
            mails = await session.run(statement, tenant=tenant, **which)
            if mails:  # once a day: tests delete mails all the time
                await note(session, now, Noted("delete", "inbox", "", tenant, is_daily=True))
            return mails

        return await self._db.write(delete)

    async def _looked_at(
        self, wanted: InboxFilter, cursor: Cursor | None, most: int
    ) -> Sequence[Any]:
        if wanted.message is not None:
            key_of(cursor, (FAR, ""))  # there is one page, but a wrong cursor is an error
            return await self._db.fetch("inbox_find_of_message", message=wanted.message, limit=most)
        at, place = key_of(cursor, (FAR, ""))
        if wanted.tenant is None:
            return await self._db.fetch("inbox_find", number=at, limit=most)
        since = -FAR if wanted.since is None else in_ms(wanted.since)
        return await self._db.fetch(
            "inbox_find_of_tenant",
            tenant=wanted.tenant,
            since=since,
            at=at,
            place=place,
            limit=most,
        )


def _is_whole_list(wanted: InboxFilter) -> bool:
    is_by_time = wanted.since is not None and wanted.tenant is None
    return wanted.to is None and wanted.subject is None and not is_by_time


def _is_past(entry: InboxEntry, wanted: InboxFilter) -> bool:
    """True if all that follow are older than those wanted."""
    return wanted.since is not None and entry.at < wanted.since


def _cursor_of(wanted: InboxFilter, entry: InboxEntry, number: int) -> Cursor:
    # A tenant's cursor says nothing about the mails of others, as a number would.
    if wanted.tenant is None:
        return cursor_at(number, "")
    return cursor_at(in_ms(entry.at), entry.message)

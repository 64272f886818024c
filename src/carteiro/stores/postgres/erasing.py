"""Taking people and tenants out of the database, a page of messages at a time.

Killed anywhere, the next call goes on: what is left of a page is found again. Claims wait only
while jobs are taken out of the queue; rows that people wrote go without the lock of the ring. What
is deleted is overwritten once the server's vacuum has given its space to others.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from carteiro.model import Erased, MessageId, Recipient, RecipientId, TenantId
from carteiro.policy.lifecycle import LONGEST_HOLD_MS
from carteiro.policy.suppression import key_of
from carteiro.stores.columns import FAR, recipient_of
from carteiro.stores.postgres import ledger
from carteiro.stores.postgres.database import Database, Session
from carteiro.stores.postgres.wake import PostgresWake
from carteiro.stores.sql.tenants import define
from carteiro.stores.tenant_columns import tenant_of


class Messages(NamedTuple):
    """The same messages, by number and by id."""

    numbers: Sequence[int]
    ids: Sequence[MessageId]


class PostgresErasing:
    """See `carteiro.stores.sql.session.Erasing`."""

    def __init__(self, db: Database, wake: PostgresWake) -> None:
        self._db = db
        self._wake = wake

    async def recipient(
        self, recipient: RecipientId, *, tenant: TenantId, limit: int
    ) -> Erased | None:
        """Take everything personal away, in pages of messages; None if there is no such recipient."""
        now = await self._db.now()
        row = await self._db.first("recipient_take", id=recipient, tenant=tenant, now=now)
        if row is None:
            return None
        erased, has_work = await _erase_recipient(self._db, recipient_of(row), now=now, limit=limit)
        if has_work:
            await self._wake.tell()
        return erased

    async def tenant(
        self, tenant: TenantId, *, busy: Sequence[MessageId] | None, limit: int
    ) -> tuple[Erased | None, list[MessageId]]:
        """Take a tenant and everything of it away, in pages of messages; None if there is none."""
        now = await self._db.now()
        async with self._db.transaction() as session:
            await session.fetch("by_index")
            await session.fetch("lock_ring")
            found = await session.first("tenants_find", ids=[tenant])
            if found is None:
                return None, []
            await define(session, [replace(tenant_of(found), disabled=True)], now)
            messages = await _take_jobs(session, tenant, now=now, limit=limit, busy=busy)
        async with self._db.transaction() as session:
            await session.fetch("by_index")
            erased = await _erase_rows(session, tenant, messages, limit=limit)
        if erased.has_more:
            return erased, list(messages.ids)
        async with self._db.transaction() as session:
            await session.fetch("by_index")
            await session.fetch("lock_ring")
            is_gone = await _erase_tenant(session, tenant)
        return replace(erased, has_more=not is_gone), list(messages.ids)


async def forget_messages(
    session: Session, messages: Messages, *, leaves_parts: bool = False
) -> None:
    """Drop messages and all beside them but dead letters and idempotency keys.

    ``leaves_parts``: events that are soon dropped with their whole part stay till then; nobody finds them any more.
    """
    await session.fetch("forget_messages", *messages, leaves_parts)


# --- a recipient


async def _erase_recipient(
    db: Database, recipient: Recipient, *, now: int, limit: int
) -> tuple[Erased, bool]:
    """Cancel what waits, blank what ended; the recipient goes with its last message. True if there may be work now.

    It is marked as deleted already: nobody sends to it any more.
    """
    whose = (recipient.id, recipient.tenant, recipient.email)
    async with db.transaction() as session:
        await session.fetch("by_index")
        waiting = [row[0] for row in await session.fetch("erase_waiting", *whose, limit)]
    # What somebody changed at the same moment is not cancelled yet: it is left for the next page.
    _, has_work = await ledger.cancel(db, waiting, recipient.tenant, now)
    async with db.transaction() as session:
        await session.fetch("by_index")
        rows = await session.fetch("erase_ended", *whose, limit)
        await _blank(session, Messages([row[0] for row in rows], [row[1] for row in rows]))
        if await session.value("erase_left", *whose):
            return Erased(len(rows), has_more=True), has_work
        key = key_of(recipient.tenant, recipient.email)
        await session.run("suppressions_blank", tenant=recipient.tenant, key=key)
        await session.run("recipient_drop", id=recipient.id)
    return Erased(len(rows), recipients=1), has_work


async def _blank(session: Session, messages: Messages) -> None:
    """Entries first: once they are ours, whoever settled late has written its events."""
    await session.fetch("erase_messages", messages.numbers)
    await session.fetch("erase_words", *messages)
    await session.fetch("erase_beside", messages.ids)


# --- a tenant


async def _take_jobs(
    session: Session,
    tenant: TenantId,
    *,
    now: int,
    limit: int,
    busy: Sequence[MessageId] | None = None,
) -> Messages:
    """Take the next messages that are not in flight out of the queue and the ledger; their rows are left.

    The caller holds the lock of the ring, and has disabled the tenant. ``busy``: what is in flight, where jobs are
    kept elsewhere.
    """
    asked = (tenant, now, LONGEST_HOLD_MS, limit)
    page = (
        await session.fetch("erase_find", *asked)
        if busy is None
        else await session.fetch("erase_find_messages", *asked, busy)
    )
    if not page:
        return Messages([], [])
    numbers = [row[0] for row in page]
    # Entries first: once they are ours, whoever settled late has moved its job.
    left = {row[0]: row[1:] for row in await session.fetch("erase_entries", numbers)}
    jobs = [(*row, *left.get(row[0], (0, False))) for row in page]
    await session.fetch("erase_jobs", tenant, FAR, *map(list, zip(*jobs, strict=True)))
    return Messages(numbers, [row[1] for row in page])


async def _erase_rows(
    session: Session, tenant: TenantId, messages: Messages, *, limit: int
) -> Erased:
    """Drop the rows of messages without jobs; when no message is left recipients, idempotency keys and mails."""
    await session.fetch("erase_beside", messages.ids)
    await forget_messages(session, messages)
    gone = len(messages.ids)
    has_messages, _ = await session.first("erase_rest", tenant)
    if has_messages:
        return Erased(gone, has_more=True)
    people = await session.value("erase_people", tenant, limit - gone, limit)
    _, has_others = await session.first("erase_rest", tenant)
    return Erased(gone, people, has_more=has_others)


async def _erase_tenant(session: Session, tenant: TenantId) -> bool:
    """Drop a tenant without messages, and the last that is its own; False if somebody adds to it right now.

    The caller holds the lock of the ring.
    """
    if not await session.value("erase_alone", tenant):
        return False
    if any(await session.first("erase_rest", tenant)):
        return False
    await session.fetch("erase_tenant", tenant)
    return True

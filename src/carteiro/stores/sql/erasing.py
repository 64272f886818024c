"""Erases recipients and tenants, a page of messages at a time.

If killed anywhere, the next call continues: it finds the rest of a page again. Claims wait only while jobs are deleted
from the queue; all other rows are deleted without the lock of the ring. Deleted data is overwritten: on SQLite at once
(``secure_delete``), on Postgres when the space is used again after a vacuum.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from carteiro.model import Erased, MessageId, Recipient, RecipientId, TenantId
from carteiro.policy.lifecycle import LONGEST_HOLD_MS
from carteiro.policy.suppression import key_of
from carteiro.ports.store import Store
from carteiro.stores.columns import FAR, recipient_of
from carteiro.stores.sql.alerts import forget_alerts, lock_alerts
from carteiro.stores.sql.audit import Noted, note
from carteiro.stores.sql.defining import define
from carteiro.stores.sql.redrives import cancel_redrives
from carteiro.stores.sql.rollups import fold_some, lock_figures
from carteiro.stores.sql.session import Database, Session
from carteiro.stores.tenant_columns import tenant_of

_NOTES = 1000  # added up in one transaction


class Messages(NamedTuple):
    """The same messages, by number and by id."""

    numbers: Sequence[int]
    ids: Sequence[MessageId]


class SqlErasing:
    """Erases for the ports of recipients and tenants."""

    def __init__(self, db: Database, store: Store, *, has_queue: bool) -> None:
        self._db = db
        self._store = store
        self._has_queue = has_queue

    # --- a recipient

    async def recipient(
        self, recipient: RecipientId, *, tenant: TenantId, limit: int = 1000
    ) -> Erased | None:
        """Cancel waiting messages, blank finished ones; delete the recipient after the last. None: there is none."""
        now = await self._db.now()
        row = await self._db.write(lambda session: _take_recipient(session, recipient, tenant, now))
        if row is None:
            return None
        found = recipient_of(row)
        if self._has_queue:  # else the other queue has cancelled the waiting messages before
            waiting = await self._waiting(found, limit)
            await self._store.cancel(waiting, tenant=tenant)
        erased = await self._db.write(lambda session: _erase_recipient(session, found, now, limit))
        if not erased.has_more:
            await self._db.empty_log()
        return erased

    async def addressed(
        self, recipient: RecipientId, *, tenant: TenantId, limit: int
    ) -> list[MessageId]:
        """Unfinished messages to a recipient, except those with a requested cancel."""
        row = await self._db.first("recipient", id=recipient, tenant=tenant)
        return [] if row is None else await self._waiting(recipient_of(row), limit)

    async def _waiting(self, recipient: Recipient, limit: int) -> list[MessageId]:
        rows = await self._db.read(
            lambda session: session.fetch("erase_waiting", limit=limit, **_whose(recipient))
        )
        return [row[0] for row in rows]

    # --- a tenant

    async def tenant(
        self, tenant: TenantId, *, busy: Sequence[MessageId] | None, limit: int
    ) -> tuple[Erased | None, list[MessageId]]:
        """Delete messages that are not in flight, then the tenant's other rows; the tenant itself last.

        ``busy``: messages in flight, for a separate queue. None: there is no such tenant. Returns also the
        deleted messages.
        """
        now = await self._db.now()
        messages = await self._db.write(
            lambda session: _take_jobs(session, tenant, busy, now=now, limit=limit)
        )
        if messages is None:
            return None, []
        erased = await self._db.write(
            lambda session: _erase_rows(session, tenant, messages, limit=limit)
        )
        if not erased.has_more and await self._db.write(
            lambda session: _erase_figures(session, tenant, limit=limit)
        ):
            erased = replace(erased, has_more=True)
        if not erased.has_more:
            is_gone = await self._db.write(lambda session: _erase_tenant(session, tenant, now))
            await self._db.empty_log()
            erased = replace(erased, has_more=not is_gone)
        return erased, list(messages.ids)


async def forget_messages(session: Session, messages: Messages) -> None:
    """Delete messages and their rows, except dead letters and idempotency keys."""
    await session.run("forget_messages", **messages._asdict())


def _whose(recipient: Recipient) -> dict[str, str]:
    return {"recipient": recipient.id, "tenant": recipient.tenant, "email": recipient.email}


async def _take_recipient(
    session: Session, recipient: RecipientId, tenant: TenantId, now: int
) -> Any:  # noqa: ANN401 - a row, or None
    """Mark a recipient as deleted; its row, None if there is none."""
    is_new = await session.run("recipient_delete", id=recipient, tenant=tenant, now=now)
    if is_new:
        await note(session, now, Noted("delete", "recipient", recipient, tenant))
    row = await session.first("recipient_take", id=recipient, tenant=tenant, now=now)
    if row is not None:
        await cancel_redrives(session, recipient_of(row), now)
    return row


async def _erase_recipient(session: Session, recipient: Recipient, now: int, limit: int) -> Erased:
    """The recipient is marked as deleted already: nothing is sent to it any more."""
    await session.fetch("by_index")
    rows = await session.fetch("erase_ended", limit=limit, **_whose(recipient))
    numbers, ids = [row[0] for row in rows], [row[1] for row in rows]
    # Lock the entries first: then any late settle has written its events.
    await session.run("erase_messages", numbers=numbers)
    await session.run("erase_words", numbers=numbers, ids=ids)
    await session.run("erase_beside", ids=ids)
    if await session.value("erase_left", **_whose(recipient)):
        return Erased(len(rows), has_more=True)
    key = key_of(recipient.tenant, recipient.email)
    await session.run("suppressions_blank", tenant=recipient.tenant, key=key)
    await session.run("recipient_drop", id=recipient.id)
    await note(session, now, Noted("erase", "recipient", recipient.id, recipient.tenant))
    return Erased(len(rows), recipients=1)


async def _take_jobs(
    session: Session, tenant: TenantId, busy: Sequence[MessageId] | None, *, now: int, limit: int
) -> Messages | None:
    """Disable the tenant, and remove the next messages from the queue and the ledger; their rows are left."""
    await session.fetch("by_index")
    await session.fetch("lock_ring")
    found = await session.first("tenants_find", ids=[tenant])
    if found is None:
        return None
    known = tenant_of(found)
    await define(session, [replace(known, disabled=True)], now)
    if not known.disabled:  # the beginning has a row, too: a crash may come before the end
        was, now_is = {"disabled": False}, {"disabled": True}
        await note(session, now, Noted("disable", "tenant", tenant, tenant, was, now_is))
    operation = "erase_find" if busy is None else "erase_find_messages"
    asked = {"tenant": tenant, "now": now, "longest": LONGEST_HOLD_MS, "limit": limit}
    page = await session.fetch(operation, busy=busy, **asked)
    if not page:
        return Messages([], [])
    numbers = [row[0] for row in page]
    # Lock the entries first: then any late settle has moved its job.
    left = {
        row[0]: row[1:] for row in await session.fetch("erase_entries", numbers=numbers, now=now)
    }
    jobs = [(*row, *left.get(row[0], (0, False))) for row in page]
    await session.run("erase_jobs", tenant=tenant, far=FAR, rows=jobs, now=now)
    return Messages(numbers, [row[1] for row in page])


async def _erase_rows(
    session: Session, tenant: TenantId, messages: Messages, *, limit: int
) -> Erased:
    """Delete the rows of messages without jobs; after the last message, recipients, idempotency keys and mails."""
    await session.fetch("by_index")
    await session.run("erase_beside", ids=messages.ids)
    await session.run("redrive_lock", ids=messages.ids)  # else a redrive in between is not seen
    await forget_messages(session, messages)
    gone = len(messages.ids)
    has_messages, _ = await session.first("erase_rest", tenant=tenant)
    if has_messages:
        return Erased(gone, has_more=True)
    people = await session.run("erase_people", tenant=tenant, most=limit - gone, limit=limit)
    _, has_others = await session.first("erase_rest", tenant=tenant)
    return Erased(gone, people, has_more=bool(has_others))


async def _erase_figures(session: Session, tenant: TenantId, *, limit: int) -> bool:
    """Delete figures of a tenant, and messages of its redrives; True if there may be more."""
    await session.fetch("by_index")
    await lock_figures(session)
    statements = ("rollups_forget", "failure_counts_forget", "redrives_forget_items")
    gone = [await session.run(each, tenant=tenant, limit=limit) for each in statements]
    return limit in gone


async def _erase_tenant(session: Session, tenant: TenantId, now: int) -> bool:
    """Delete a tenant without messages, and its last rows; False if something is left, or is just being added."""
    await session.fetch("by_index")
    # Before the tenant: a fold, and a look for alerts, lock in this order.
    await lock_figures(session)
    await lock_alerts(session)
    await session.fetch("lock_ring")
    if not await session.value("erase_alone", tenant=tenant):
        return False
    if any(await session.first("erase_rest", tenant=tenant)):
        return False
    _, has_more = await fold_some(session, now, limit=_NOTES)  # notes name their tenants
    if has_more:
        return False
    await forget_alerts(session, tenant)
    await session.run("erase_tenant", tenant=tenant)
    await note(session, now, Noted("erase", "tenant", tenant, tenant))
    return True

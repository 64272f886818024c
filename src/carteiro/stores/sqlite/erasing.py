"""Taking people and tenants out of the file, a page of messages a transaction.

The file is opened with ``secure_delete``: what is deleted is overwritten. Killed between two pages, the next call
goes on where the last one committed.
"""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from carteiro.model import Erased, MessageId, Recipient, RecipientId, TenantId
from carteiro.policy.lifecycle import LONGEST_HOLD_MS
from carteiro.policy.suppression import key_of
from carteiro.stores.columns import FAR, recipient_of
from carteiro.stores.sql.tenants import define
from carteiro.stores.sqlite import ledger
from carteiro.stores.sqlite.database import SqliteSession, finished
from carteiro.stores.sqlite.opening import empty_log
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.reader import Reader
from carteiro.stores.sqlite.rows import as_json, run
from carteiro.stores.sqlite.wake import SqliteWake
from carteiro.stores.sqlite.writer import Writer
from carteiro.stores.tenant_columns import tenant_of

_WITH_THE_TENANT = (
    "erase_dead_letters",
    "erase_tags",
    "erase_templates",
    "erase_domains",
    "erase_keys",
    "erase_older_keys",
    "erase_counts",
    "erase_ready",
    "erase_parked",
    "erase_seats",
    "erase_tenant",
)


class SqliteErasing:
    """See `carteiro.stores.sql.session.Erasing`."""

    def __init__(
        self, writer: Writer, reader: Reader, wake: SqliteWake, options: SqliteOptions
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._wake = wake
        self._clock = options.clock
        self._has_queue = options.has_queue

    async def recipient(
        self, recipient: RecipientId, *, tenant: TenantId, limit: int
    ) -> Erased | None:
        """Take everything personal away, in pages of messages; None if there is no such recipient."""
        row = await self._reader.ask(
            lambda db: run(db, "recipient", id=recipient, tenant=tenant).fetchone()
        )
        if row is None:
            return None
        found = recipient_of(row)
        # Where jobs are kept elsewhere, whoever keeps them has cancelled what waits before.
        waiting = (
            await self._reader.ask(lambda db: waiting_for(db, found, limit))
            if self._has_queue
            else []
        )
        erased, has_work = await self._writer.do(
            lambda db: _erase_recipient(db, found, waiting, now=self._clock(), limit=limit)
        )
        if has_work:
            self._wake.ring()
        if not erased.has_more:
            await self._reader.ask(empty_log)
        return erased

    async def tenant(
        self, tenant: TenantId, *, busy: Sequence[MessageId] | None, limit: int
    ) -> tuple[Erased | None, list[MessageId]]:
        """Take a tenant and everything of it away, in pages of messages; None if there is none."""

        def take(db: sqlite3.Connection) -> tuple[Erased | None, list[MessageId]]:
            found = run(db, "tenants_find", ids=as_json([tenant])).fetchone()
            if found is None:
                return None, []
            now = self._clock()
            disabled = replace(tenant_of(found), disabled=True)
            finished(define(SqliteSession(db), [disabled], now))
            return _erase_tenant(db, tenant, now=now, limit=limit, busy=busy)

        erased, gone = await self._writer.do(take)
        if erased is not None and not erased.has_more:
            await self._reader.ask(empty_log)
        return erased, gone


def waiting_for(db: sqlite3.Connection, recipient: Recipient, limit: int) -> Sequence[MessageId]:
    """What is to be cancelled. Looked for beside the writer: a recipient may have many finished messages."""
    mine = {"recipient": recipient.id, "tenant": recipient.tenant, "email": recipient.email}
    return [row[0] for row in run(db, "erase_waiting", limit=limit, **mine)]


def forget_messages(db: sqlite3.Connection, ids: Sequence[MessageId]) -> None:
    """Drop finished messages and all that is kept beside them, but idempotency keys."""
    listed = as_json(ids)
    run(db, "prune_tags", ids=listed)
    run(db, "prune_inbox", ids=listed)
    run(db, "prune_contents", ids=listed)
    run(db, "prune_events", ids=listed)
    run(db, "prune_messages", ids=listed)


def _erase_recipient(
    db: sqlite3.Connection,
    recipient: Recipient,
    waiting: Sequence[MessageId],
    *,
    now: int,
    limit: int,
) -> tuple[Erased, bool]:
    """Cancel what waits, blank what ended; the recipient goes with its last message. True if there may be work now."""
    run(db, "recipient_delete", id=recipient.id, tenant=recipient.tenant, now=now)
    _, has_work = ledger.cancel(db, waiting, recipient.tenant, now)
    mine = {"recipient": recipient.id, "tenant": recipient.tenant, "email": recipient.email}
    ended = [row[0] for row in run(db, "erase_ended", limit=limit, **mine)]
    _blank(db, ended)
    [is_left] = run(db, "erase_left", **mine).fetchone()
    if is_left:
        return Erased(len(ended), has_more=True), has_work
    key = key_of(recipient.tenant, recipient.email)
    run(db, "suppressions_blank", tenant=recipient.tenant, key=key)
    run(db, "recipient_drop", id=recipient.id)
    return Erased(len(ended), recipients=1), has_work


def _blank(db: sqlite3.Connection, ids: Sequence[MessageId]) -> None:
    listed = as_json(ids)
    run(db, "prune_tags", ids=listed)
    run(db, "prune_inbox", ids=listed)
    run(db, "prune_contents", ids=listed)
    run(db, "unbury", ids=listed)
    run(db, "erase_requests_of_messages", ids=listed)
    run(db, "erase_events", ids=listed)
    run(db, "erase_messages", ids=listed)


def _erase_tenant(
    db: sqlite3.Connection,
    tenant: TenantId,
    *,
    now: int,
    limit: int,
    busy: Sequence[MessageId] | None = None,
) -> tuple[Erased, list[MessageId]]:
    """Take messages away that are not in flight, then recipients, then the rest; the tenant itself goes last.

    ``busy``: what is in flight, where jobs are kept elsewhere. Returns also the messages that went.
    """
    ids = _drop_messages(db, tenant, now=now, limit=limit, busy=busy)
    gone = len(ids)
    has_messages, _ = run(db, "erase_rest", tenant=tenant).fetchone()
    if has_messages:
        return Erased(gone, has_more=True), ids
    people = run(db, "erase_recipients", tenant=tenant, limit=limit - gone).rowcount
    run(db, "erase_requests", tenant=tenant, limit=limit)
    run(db, "erase_mails", tenant=tenant, limit=limit)
    run(db, "erase_suppressions", tenant=tenant, limit=limit)
    _, has_others = run(db, "erase_rest", tenant=tenant).fetchone()
    if not has_others:
        for operation in _WITH_THE_TENANT:
            run(db, operation, tenant=tenant)
    return Erased(gone, people, has_more=bool(has_others)), ids


def _drop_messages(
    db: sqlite3.Connection,
    tenant: TenantId,
    *,
    now: int,
    limit: int,
    busy: Sequence[MessageId] | None,
) -> list[MessageId]:
    asked = {"tenant": tenant, "now": now, "longest": LONGEST_HOLD_MS, "limit": limit}
    if busy is None:
        page = run(db, "erase_find", **asked).fetchall()
    else:
        page = run(db, "erase_find_messages", busy=as_json(busy), **asked).fetchall()
    ids = [row[0] for row in page]
    run(db, "drop_ready", ids=as_json(ids))
    run(db, "drop_parked", ids=as_json(ids))
    jobs = Counter(kind for _, kind, has_job in page if has_job)
    ledger.touch_seats(db, {(kind, tenant): [FAR, -count] for kind, count in jobs.items()})
    run(db, "unbury", ids=as_json(ids))
    run(db, "erase_requests_of_messages", ids=as_json(ids))
    forget_messages(db, ids)
    return ids

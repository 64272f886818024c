"""Taking people and tenants out of the file, a page of messages a transaction.

The file is opened with ``secure_delete``: what is deleted is overwritten. Killed between two pages, the next call
goes on where the last one committed.
"""

import sqlite3
from collections import Counter
from collections.abc import Sequence

from carteiro.model import Erased, MessageId, Recipient, TenantId
from carteiro.policy.lifecycle import LONGEST_HOLD_MS
from carteiro.policy.suppression import key_of
from carteiro.stores.columns import FAR
from carteiro.stores.sqlite import ledger
from carteiro.stores.sqlite.rows import as_json, run

_WITH_THE_TENANT = (
    "erase_dead_letters",
    "erase_tags",
    "erase_templates",
    "erase_domains",
    "erase_keys",
    "erase_counts",
    "erase_ready",
    "erase_parked",
    "erase_seats",
    "erase_tenant",
)


def forget_messages(db: sqlite3.Connection, ids: Sequence[MessageId]) -> None:
    """Drop finished messages and all that is kept beside them, but idempotency keys."""
    listed = as_json(ids)
    run(db, "prune_tags", ids=listed)
    run(db, "prune_inbox", ids=listed)
    run(db, "prune_contents", ids=listed)
    run(db, "prune_events", ids=listed)
    run(db, "prune_messages", ids=listed)


def erase_recipient(
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


def erase_tenant(
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

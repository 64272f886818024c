"""Taking people and tenants out of the memory store, a page of messages at a time."""

from collections.abc import Iterable
from dataclasses import replace

from carteiro.model import EMAIL, FINISHED, Erased, MessageId, Recipient, TenantId
from carteiro.policy import lifecycle
from carteiro.policy.suppression import key_of
from carteiro.stores.memory.tables import Row, Tables, to_datetime


def erase_recipient(tables: Tables, recipient: Recipient, limit: int) -> Erased:
    """Cancel what waits, blank what ended; the recipient itself goes with its last message."""
    now = tables.now()
    deleted_at = recipient.deleted_at or to_datetime(now)
    tables.recipients[recipient.id] = replace(recipient, deleted_at=deleted_at)
    waiting = [row for row in _of(tables, recipient) if _is_to_be_cancelled(row)]
    for row in waiting[:limit]:
        job = tables.jobs.get(row.entry.id)
        is_leased = job is not None and job.is_leased(now)
        _, change = lifecycle.cancel(row.entry, leased=is_leased, now=now)
        if change is not None:
            tables.apply(row, change, now)
    ended = [row for row in _of(tables, recipient) if row.entry.state in FINISHED]
    for row in ended[:limit]:
        _blank(tables, row)
    if _of(tables, recipient):
        return Erased(len(ended[:limit]), has_more=True)
    _forget_address(tables, recipient)
    del tables.recipients[recipient.id]
    return Erased(len(ended[:limit]), recipients=1)


def _forget_address(tables: Tables, recipient: Recipient) -> None:
    """What is suppressed stays so: by the hash of the address alone."""
    records = tables.suppressions.get(recipient.tenant, {})
    key = key_of(recipient.tenant, recipient.email)
    for place, record in records.items():
        if record.key == key:
            records[place] = record._replace(address=None)


def erase_tenant(tables: Tables, tenant: TenantId, limit: int) -> Erased:
    """Take messages away that are not in flight, then recipients, then the rest; the tenant itself goes last."""
    now = tables.now()
    rows = [row for row in tables.rows.values() if row.entry.tenant == tenant]
    own = [row.entry.id for row in sorted(rows, key=_order)]
    page = [each for each in own if not _is_in_flight(tables, each, now)][:limit]
    for message in page:
        _drop(tables, message)
    people = [each for each in tables.recipients.values() if each.tenant == tenant]
    if len(page) < len(own) or len(people) > limit - len(page):
        gone = [] if len(page) < len(own) else people[: limit - len(page)]
        _drop_recipients(tables, gone)
        return Erased(len(page), len(gone), has_more=True)
    _drop_recipients(tables, people)
    _drop_tenant(tables, tenant)
    return Erased(len(page), len(people))


def _order(row: Row) -> tuple[bool, int, int]:
    """E-mails before the rest, oldest first."""
    return row.entry.kind != EMAIL, row.created_at, row.number


def _of(tables: Tables, recipient: Recipient) -> list[Row]:
    """The messages to a recipient: those that name it, and those to its address that name nobody."""
    own = (row for row in tables.rows.values() if row.entry.tenant == recipient.tenant)
    return [
        row
        for row in own
        if row.recipient_id == recipient.id
        or (row.recipient_id is None and row.message.to == recipient.email)
    ]


def _is_to_be_cancelled(row: Row) -> bool:
    return row.entry.state not in FINISHED and row.entry.cancel_requested_at is None


def _blank(tables: Tables, row: Row) -> None:
    """Leave id, state and times of a message, and of its events their types and times."""
    entry, message = row.entry, row.message
    row.recipient_id = None
    row.events = [event._replace(metadata={}) for event in row.events]
    row.message = replace(
        message,
        content="",
        request_id="",
        to=None,
        subject=None,
        external_id=None,
        recipient=None,
        events=(),
        tags=(),
        key=None,
    )
    entry.evidence = None
    entry.provider_id = None if entry.provider_id is None else ""
    if entry.failure is not None:
        entry.failure = replace(entry.failure, reason="", original_code=None)
    _drop_beside(tables, entry.id)


def _drop(tables: Tables, message: MessageId) -> None:
    job = tables.jobs.get(message)
    if job is not None:
        tables.drop(job)
    del tables.rows[message]
    _drop_beside(tables, message)


def _drop_beside(tables: Tables, message: MessageId) -> None:
    """What else is kept of a message."""
    tables.contents.pop(message, None)
    tables.dead_letters.pop(message, None)
    tables.mails[:] = [mail for mail in tables.mails if mail.message != message]
    asked = [key for key, request in tables.requests.items() if request.message == message]
    for key in asked:
        del tables.requests[key]


def _drop_recipients(tables: Tables, recipients: Iterable[Recipient]) -> None:
    for recipient in recipients:
        del tables.recipients[recipient.id]


def _drop_tenant(tables: Tables, tenant: TenantId) -> None:
    for seats in tables.seats.values():
        seats.pop(tenant, None)
    tables.keys = {each: key for each, key in tables.keys.items() if key.tenant != tenant}
    tables.templates = {each: kept for each, kept in tables.templates.items() if each[0] != tenant}
    tables.requests = {each: kept for each, kept in tables.requests.items() if each[0] != tenant}
    tables.mails[:] = [mail for mail in tables.mails if mail.tenant != tenant]
    tables.api_counts.pop(tenant, None)
    tables.suppressions.pop(tenant, None)
    tables.next_token_us.pop(tenant, None)
    del tables.tenants[tenant]


def _is_in_flight(tables: Tables, message: MessageId, now: int) -> bool:
    job = tables.jobs.get(message)
    return job is not None and job.is_leased(now)

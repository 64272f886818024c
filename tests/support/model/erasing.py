"""Deleting tenants from the model, a page of messages at a time."""

from collections.abc import Iterable

from carteiro.model import EMAIL, Erased, MessageId, Recipient, TenantId
from support.model.tables import Row, Tables


def erase_tenant(tables: Tables, tenant: TenantId, limit: int) -> Erased:
    """Delete messages that are not in flight, then recipients, then the rest; the tenant itself goes last."""
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


def _drop(tables: Tables, message: MessageId) -> None:
    job = tables.jobs.get(message)
    if job is not None:
        tables.drop(job)
    del tables.rows[message]
    tables.contents.pop(message, None)
    tables.dead_letters.pop(message, None)
    asked = [key for key, request in tables.requests.items() if request.message == message]
    for key in asked:
        del tables.requests[key]


def _drop_recipients(tables: Tables, recipients: Iterable[Recipient]) -> None:
    for recipient in recipients:
        del tables.recipients[recipient.id]


def _drop_tenant(tables: Tables, tenant: TenantId) -> None:
    for seats in tables.seats.values():
        seats.pop(tenant, None)
    tables.requests = {each: kept for each, kept in tables.requests.items() if each[0] != tenant}
    tables.api_counts.pop(tenant, None)
    tables.next_token_us.pop(tenant, None)
    del tables.tenants[tenant]


def _is_in_flight(tables: Tables, message: MessageId, now: int) -> bool:
    job = tables.jobs.get(message)
    return job is not None and job.is_leased(now)

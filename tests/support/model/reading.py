"""Queries of people and of the API about messages and the queue."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from carteiro.model import (
    FINISHED,
    LATEST,
    Cursor,
    Depth,
    Failure,
    IdempotencyKey,
    KindName,
    MessageFilter,
    MessageId,
    Page,
    QueuePlace,
    Replayed,
    State,
    StoredMessage,
    TenantId,
    TimelineEvent,
)
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.stores.cursors import FAR, cursor_at, key_of
from support.model.tables import (
    Job,
    Row,
    Seat,
    Tables,
    in_parked_order,
    to_datetime,
    to_datetime_or_none,
    to_ms,
)


class ModelReading:
    """The `Reading` port on plain dicts."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def message(
        self, message: MessageId, *, tenant: TenantId | None = None
    ) -> StoredMessage | None:
        """One message with its content; ``tenant`` restricts it to that tenant's."""
        row = self._tables.rows.get(message)
        if row is None or tenant not in {None, row.entry.tenant}:
            return None
        return _stored(row, self._tables.contents.get(message))

    async def first(self, key: IdempotencyKey, *, tenant: TenantId) -> Replayed | None:
        """The acceptance that a key of the tenant still stands for, if it was of this very request."""
        first = self._tables.first_under(key, tenant, self._tables.now())
        return None if first is None or first.digest != key.digest else first.replayed()

    async def messages(
        self, wanted: MessageFilter, *, cursor: Cursor | None = None, limit: int = 100
    ) -> Page[StoredMessage]:
        """The messages that match, newest first, without their contents."""
        after = self._place_of(cursor, wanted.tenant)
        rows = [row for row in self._tables.rows.values() if _age(row) < after]
        found = sorted((row for row in rows if self._matches(row, wanted)), key=_age, reverse=True)
        more = _cursor_of(found[limit - 1]) if len(found) > limit else None
        return Page([_stored(row, None) for row in found[:limit]], more)

    def _place_of(self, cursor: Cursor | None, tenant: TenantId | None) -> tuple[int, int]:
        """The start of a page: behind the cursor's message; if it was deleted, at the next id of its time."""
        if cursor is None:
            return FAR, 0
        at, message = key_of(cursor, (FAR, ""))
        rows = self._tables.rows.values()
        same = {
            row.entry.id: row.number
            for row in rows
            if row.created_at == at and tenant in {None, row.entry.tenant}
        }
        before = (number + 1 for each, number in same.items() if each < message)
        return at, same.get(MessageId(message)) or max(before, default=0)

    def _matches(self, row: Row, wanted: MessageFilter) -> bool:
        entry, message = row.entry, row.message
        after, before = wanted.created_after, wanted.created_before
        created_at = to_datetime(row.created_at)
        return (
            wanted.tenant in {None, entry.tenant}
            and wanted.kind in {None, entry.kind}
            and wanted.state in {None, entry.state}
            and wanted.to in {None, message.to}
            and wanted.external_id in {None, message.external_id}
            and wanted.provider_id in {None, entry.provider_id or None}
            and wanted.recipient_external_id in {None, self._recipient_named(row)}
            and wanted.tag in {None, *message.tags}
            and wanted.code in {None, *_codes(entry.failure)}
            and (after is None or created_at >= after)
            and (before is None or created_at < before)
        )

    def _recipient_named(self, row: Row) -> str | None:
        """The tenant's own id of the recipient of a message."""
        known = self._tables.recipients.get(row.recipient_id) if row.recipient_id else None
        is_own = known is not None and known.tenant == row.entry.tenant
        return known.external_id if known is not None and is_own else None

    async def events(self, message: MessageId) -> list[TimelineEvent]:
        """The timeline of a message, in the order in which it was written."""
        row = self._tables.rows.get(message)
        events = row.events if row else []
        return [TimelineEvent(each.type, each.metadata, to_datetime(each.at)) for each in events]

    async def place(self, message: MessageId) -> QueuePlace | None:
        """The position of the job of a message; None when it has none."""
        job = self._tables.jobs.get(message)
        if job is None:
            return None
        now = self._tables.now()
        is_leased = job.is_leased(now)
        is_parked = is_leased or (job.claim is None and (job.parked_until or 0) > now)
        seat = self._tables.seats[job.kind][job.tenant]
        return QueuePlace(
            parked_until=to_datetime_or_none(job.parked_until if is_parked else None),
            is_claimed=is_leased,
            claims=job.claims,
            tenant_wakes_at=_still_to_come(seat.wakes_at, now),
            tenant_in_flight=self._in_flight(self._tables.seats_of(job.tenant), now),
            limited_until=_still_to_come(self._tables.limited_until(job.kind, now), now),
        )

    async def due(self, tenant: TenantId, kind: KindName, *, limit: int) -> list[MessageId]:
        """The tenant's next claimable jobs, at most ``limit``; behind as many that are claimed."""
        now = self._tables.now()
        seat = self._tables.seats.get(kind, {}).get(tenant)
        jobs = [] if seat is None else list(seat.jobs.values())
        claimed = in_parked_order(job for job in jobs if job.claim is not None)
        others = (job for job in jobs if job.claim is None and (job.parked_until or 0) <= now)
        ready = sorted(others, key=lambda job: job.order)
        return [job.id for job in claimed[:limit] + ready[:limit]]

    async def depths(self) -> list[Depth]:
        """The size of the queue, by kind."""
        now = self._tables.now()
        kinds = sorted(kind for kind, seats in self._tables.seats.items() if seats)
        return [self._depth(kind, now) for kind in kinds]

    def _depth(self, kind: KindName, now: int) -> Depth:
        seats = list(self._tables.seats[kind].values())
        jobs = [job for seat in seats for job in seat.jobs.values()]
        since = (_claimable_since(job, now) for job in jobs)
        oldest = min((at for at in since if at <= now), default=None)
        return Depth(kind, len(jobs), self._in_flight(seats, now), to_datetime_or_none(oldest))

    def _in_flight(self, seats: Sequence[Seat], now: int) -> int:
        return sum(job.is_leased(now) for seat in seats for job in seat.jobs.values())

    async def unsettled(self, ids: Sequence[MessageId]) -> list[MessageId]:
        """The ids whose message is not finished."""
        rows = self._tables.rows
        return [each for each in ids if each in rows and rows[each].entry.state not in FINISHED]

    async def states(self, *, tenant: TenantId | None = None) -> Mapping[State, int]:
        """The number of messages in each state."""
        entries = (row.entry for row in self._tables.rows.values())
        return Counter(entry.state for entry in entries if tenant in {None, entry.tenant})


def _age(row: Row) -> tuple[int, int]:
    """The order of every list of messages."""
    return row.created_at, row.number


def _cursor_of(row: Row) -> Cursor:
    return cursor_at(row.created_at, row.entry.id)


def _claimable_since(job: Job, now: int) -> int:
    """A ready job can be claimed, also if the clock stepped back behind its due time."""
    return min(job.due_at, now) if job.parked_until is None else job.parked_until


def _still_to_come(at: int | None, now: int) -> datetime | None:
    """A future time; one that never comes becomes the latest possible time."""
    return None if at is None or at <= now else to_datetime(min(at, to_ms(LATEST)))


def _stored(row: Row, content: str | None) -> StoredMessage:
    entry, message = row.entry, row.message
    return StoredMessage(
        id=entry.id,
        tenant=entry.tenant,
        kind=entry.kind,
        state=entry.state,
        priority=message.priority,
        due_at=to_datetime(entry.due_at),
        expires_at=to_datetime(entry.expires_at),
        attempts=entry.attempts,
        charged=entry.charged,
        in_doubt=entry.in_doubt,
        round=entry.round,
        revision=row.entry.revision,
        holder=entry.holder,
        held_until=to_datetime_or_none(entry.held_until),
        cancel_requested_at=to_datetime_or_none(entry.cancel_requested_at),
        request_id=message.request_id,
        external_id=message.external_id,
        recipient_id=row.recipient_id,
        to=message.to,
        subject=message.subject,
        provider=entry.provider,
        provider_id=entry.provider_id,
        failure=entry.failure,
        duration=_duration(entry.duration_ms),
        created_at=to_datetime(row.created_at),
        finished_at=to_datetime_or_none(entry.finished_at),
        content=content,
        tags=message.tags,
        template_type=message.template_type,
    )


def _duration(ms: int | None) -> timedelta | None:
    return None if ms is None else ms * MILLISECOND


def _codes(failure: Failure | None) -> set[str | None]:
    """The codes of a failure: ours, and the provider's."""
    return set() if failure is None else {failure.code, failure.original_code}

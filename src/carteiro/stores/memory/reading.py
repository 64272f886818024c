"""What people and the API may ask of the memory store."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

from carteiro.model import (
    FINISHED,
    MessageId,
    Recipient,
    RecipientId,
    State,
    StoredMessage,
    TenantId,
    TimelineEvent,
)
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.stores.memory.tables import Row, Tables, to_datetime, to_datetime_or_none


class MemoryReading:
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

    async def events(self, message: MessageId) -> list[TimelineEvent]:
        """The timeline of a message, in the order in which it was written."""
        row = self._tables.rows.get(message)
        events = row.events if row else []
        return [TimelineEvent(each.type, each.metadata, to_datetime(each.at)) for each in events]

    async def recipient(self, recipient: RecipientId, *, tenant: TenantId) -> Recipient | None:
        """One recipient of a tenant, deleted or not."""
        found = self._tables.recipients.get(recipient)
        return found if found is not None and found.tenant == tenant else None

    async def unsettled(self, ids: Sequence[MessageId]) -> list[MessageId]:
        """Those of the ids whose message is not finished."""
        rows = self._tables.rows
        return [each for each in ids if each in rows and rows[each].entry.state not in FINISHED]

    async def states(self) -> Mapping[State, int]:
        """How many messages rest in each state."""
        return Counter(row.entry.state for row in self._tables.rows.values())


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
        revision=row.revision,
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
    )


def _duration(ms: int | None) -> timedelta | None:
    return None if ms is None else ms * MILLISECOND

"""Queries on Postgres."""

from collections.abc import Mapping, Sequence

import orjson

from carteiro.model import (
    Cursor,
    Depth,
    EventType,
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
from carteiro.policy.lifecycle import LONGEST_HOLD_MS
from carteiro.stores.columns import FAR, message_of, moment
from carteiro.stores.postgres.accept import firsts_under
from carteiro.stores.postgres.database import Database
from carteiro.stores.postgres.lists import find_messages
from carteiro.stores.postgres.options import PostgresOptions
from carteiro.stores.queue_columns import depth_of, due_of, place_of


class PostgresReading:
    """See `carteiro.ports.reading.Reading` for what it promises."""

    def __init__(self, db: Database, options: PostgresOptions) -> None:
        self._db = db
        self._has_queue = options.has_queue

    async def message(
        self, message: MessageId, *, tenant: TenantId | None = None
    ) -> StoredMessage | None:
        """One message with its content; ``tenant`` restricts it to that tenant's."""
        row = await self._db.first("message", message, tenant)
        return None if row is None else message_of(row)

    async def first(self, key: IdempotencyKey, *, tenant: TenantId) -> Replayed | None:
        """The acceptance that a key of the tenant still stands for, if it was of this very request."""
        asked, now = (tenant, key.key), await self._db.now()
        first = (await firsts_under(self._db, [asked], now)).get(asked)
        return None if first is None or first.digest != key.digest else first.answer

    async def messages(
        self, wanted: MessageFilter, *, cursor: Cursor | None = None, limit: int = 100
    ) -> Page[StoredMessage]:
        """The messages that match, newest first, without their contents."""
        async with self._db.transaction() as session:
            return await find_messages(
                session, wanted, cursor=cursor, limit=limit, has_queue=self._has_queue
            )

    async def events(self, message: MessageId) -> list[TimelineEvent]:
        """The timeline of a message, oldest first."""
        rows = await self._db.fetch("events", message)
        return [
            TimelineEvent(EventType(name), orjson.loads(metadata), moment(at))
            for name, metadata, at in rows
        ]

    async def place(self, message: MessageId) -> QueuePlace | None:
        """Where the job of a message is; None when it has none."""
        now = await self._db.now()
        row = await self._db.first("place", message, now, LONGEST_HOLD_MS, FAR)
        return None if row is None else place_of(row, now)

    async def due(self, tenant: TenantId, kind: KindName, *, limit: int) -> list[MessageId]:
        """The tenant's next jobs that a claim could get now, at most ``limit``; behind as many that are claimed."""
        now = await self._db.now()
        async with self._db.transaction() as session:
            await session.fetch("by_index")
            rows = await session.fetch("due", tenant, kind, limit, now)
        return due_of(rows, limit)

    async def depths(self) -> list[Depth]:
        """How much is in the queue, by kind; costs the same however much that is."""
        now = await self._db.now()
        async with self._db.transaction() as session:
            await session.fetch("by_index")
            rows = await session.fetch("depths", now, LONGEST_HOLD_MS)
        return [depth_of(row, now) for row in rows]

    async def unsettled(self, ids: Sequence[MessageId]) -> list[MessageId]:
        """Those of the ids whose message is not finished."""
        return [row[0] for row in await self._db.fetch("unsettled", ids)]

    async def states(self, *, tenant: TenantId | None = None) -> Mapping[State, int]:
        """How many messages rest in each state."""
        rows = await (
            self._db.fetch("states")
            if tenant is None
            else self._db.fetch("states_of_tenant", tenant)
        )
        return {State(state): count for state, count in rows}

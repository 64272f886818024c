"""Queries for people and for monitoring."""

from collections.abc import Mapping, Sequence

import orjson

from carteiro import model
from carteiro.policy.estimate import MOST_AHEAD
from carteiro.policy.lifecycle import LONGEST_HOLD_MS
from carteiro.stores.columns import FAR, message_of, moment
from carteiro.stores.queue_columns import depth_of, due_of, place_of
from carteiro.stores.sql.door import firsts_under
from carteiro.stores.sql.lists import find_messages
from carteiro.stores.sql.session import Database


class SqlReading:
    """See `carteiro.ports.reading.Reading` for what it promises."""

    def __init__(self, db: Database, *, has_queue: bool) -> None:
        self._db = db
        self._has_queue = has_queue

    async def message(
        self, message: model.MessageId, *, tenant: model.TenantId | None = None
    ) -> model.StoredMessage | None:
        """One message with its content; with ``tenant``, only that tenant's."""
        row = await self._db.first("message", id=message, tenant=tenant)
        return None if row is None else message_of(row)

    async def first(
        self, key: model.IdempotencyKey, *, tenant: model.TenantId
    ) -> model.Replayed | None:
        """The acceptance of the same request with this key, if the key is still kept."""
        asked, now = (tenant, key.key), await self._db.now()
        first = (await firsts_under(self._db, [asked], now)).get(asked)
        return None if first is None or first.digest != key.digest else first.answer

    async def messages(
        self, wanted: model.MessageFilter, *, cursor: model.Cursor | None = None, limit: int = 100
    ) -> model.Page[model.StoredMessage]:
        """The matching messages, newest first, without their contents."""
        return await self._db.read(
            lambda session: find_messages(
                session, wanted, cursor=cursor, limit=limit, has_queue=self._has_queue
            )
        )

    async def events(self, message: model.MessageId) -> list[model.TimelineEvent]:
        """The timeline of a message, oldest first."""
        rows = await self._db.fetch("events", id=message)
        return [
            model.TimelineEvent(model.EventType(name), orjson.loads(metadata), moment(at))
            for name, metadata, at in rows
        ]

    async def place(self, message: model.MessageId) -> model.QueuePlace | None:
        """State of a message's job; None if it has none."""
        now = await self._db.now()
        bounds = {"longest": LONGEST_HOLD_MS, "never": FAR, "most": MOST_AHEAD}
        row = await self._db.first("place", id=message, now=now, **bounds)
        return None if row is None else place_of(row, now)

    async def due(
        self, tenant: model.TenantId, kind: model.KindName, *, limit: int
    ) -> list[model.MessageId]:
        """The tenant's next claimable jobs, at most ``limit``, after at most as many claimed ones."""
        now = await self._db.now()
        rows = await self._db.read(
            lambda session: session.fetch("due", tenant=tenant, kind=kind, limit=limit, now=now)
        )
        return due_of(rows, limit)

    async def depths(self) -> list[model.Depth]:
        """Queue depth, by kind; constant cost."""
        now = await self._db.now()
        rows = await self._db.read(
            lambda session: session.fetch("depths", now=now, longest=LONGEST_HOLD_MS)
        )
        return [depth_of(row, now) for row in rows]

    async def unsettled(self, ids: Sequence[model.MessageId]) -> list[model.MessageId]:
        """The ids of unfinished messages among these."""
        return [row[0] for row in await self._db.fetch("unsettled", ids=ids)]

    async def states(self, *, tenant: model.TenantId | None = None) -> Mapping[model.State, int]:
        """The number of messages by state. Counts the ledger: for users and tests, too slow for gauges."""
        operation = "states" if tenant is None else "states_of_tenant"
        rows = await self._db.fetch(operation, tenant=tenant)
        return {model.State(state): count for state, count in rows}

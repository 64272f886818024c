"""Queries on connections of their own, beside the writer."""

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

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
from carteiro.stores.columns import message_of, moment
from carteiro.stores.queue_columns import depth_of, due_of, place_of
from carteiro.stores.sqlite.accept import firsts_under
from carteiro.stores.sqlite.lists import find_messages
from carteiro.stores.sqlite.opening import connect, in_our_words
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.rows import as_json, run

Result = TypeVar("Result")


class Reader:
    """One reading connection in a thread of its own: a slow query stops neither the loop nor the writer."""

    def __init__(self, path: Path, *, busy_timeout_ms: int, durable: bool = True) -> None:
        self._path = path
        self._busy_timeout_ms = busy_timeout_ms
        self._is_durable = durable
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="carteiro-reader")
        self._connection: sqlite3.Connection | None = None

    async def ask(self, query: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run a query in the reader's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, query)

    def close(self) -> None:
        """Finish what is asked, then close."""
        self._thread.shutdown(wait=True)
        if self._connection is not None:
            self._connection.close()

    def _run(self, query: Callable[[sqlite3.Connection], Result]) -> Result:
        with in_our_words(self._path):
            if self._connection is None:
                self._connection = connect(
                    self._path, busy_timeout_ms=self._busy_timeout_ms, durable=self._is_durable
                )
            return query(self._connection)


class SqliteReading:
    """See `carteiro.ports.reading.Reading` for what it promises."""

    def __init__(self, reader: Reader, options: SqliteOptions) -> None:
        self._reader = reader
        self._clock = options.clock
        self._has_queue = options.has_queue

    async def message(
        self, message: MessageId, *, tenant: TenantId | None = None
    ) -> StoredMessage | None:
        """One message with its content; ``tenant`` restricts it to that tenant's."""
        row = await self._reader.ask(
            lambda db: run(db, "message", id=message, tenant=tenant).fetchone()
        )
        return None if row is None else message_of(row)

    async def first(self, key: IdempotencyKey, *, tenant: TenantId) -> Replayed | None:
        """The acceptance that a key of the tenant still stands for, if it was of this very request."""
        asked, now = (tenant, key.key), self._clock()
        found = await self._reader.ask(lambda db: firsts_under(db, [asked], now))
        first = found.get(asked)
        return None if first is None or first.digest != key.digest else first.answer

    async def messages(
        self, wanted: MessageFilter, *, cursor: Cursor | None = None, limit: int = 100
    ) -> Page[StoredMessage]:
        """The messages that match, newest first, without their contents."""
        return await self._reader.ask(
            lambda db: find_messages(
                db, wanted, cursor=cursor, limit=limit, has_queue=self._has_queue
            )
        )

    async def events(self, message: MessageId) -> list[TimelineEvent]:
        """The timeline of a message, oldest first."""
        rows = await self._reader.ask(lambda db: run(db, "events", id=message).fetchall())
        return [
            TimelineEvent(EventType(name), orjson.loads(metadata), moment(at))
            for name, metadata, at in rows
        ]

    async def place(self, message: MessageId) -> QueuePlace | None:
        """Where the job of a message is; None when it has none."""
        now = self._clock()
        row = await self._reader.ask(
            lambda db: run(db, "place", id=message, now=now, longest=LONGEST_HOLD_MS).fetchone()
        )
        return None if row is None else place_of(row, now)

    async def due(self, tenant: TenantId, kind: KindName, *, limit: int) -> list[MessageId]:
        """The tenant's next jobs that a claim could get now, at most ``limit``; behind as many that are claimed."""
        asked = {"tenant": tenant, "kind": kind, "limit": limit, "now": self._clock()}
        return due_of(await self._reader.ask(lambda db: run(db, "due", **asked).fetchall()), limit)

    async def depths(self) -> list[Depth]:
        """How much is in the queue, by kind; costs the same however much that is."""
        now = self._clock()
        rows = await self._reader.ask(
            lambda db: run(db, "depths", now=now, longest=LONGEST_HOLD_MS).fetchall()
        )
        return [depth_of(row, now) for row in rows]

    async def unsettled(self, ids: Sequence[MessageId]) -> list[MessageId]:
        """Those of the ids whose message is not finished."""
        rows = await self._reader.ask(lambda db: run(db, "unsettled", ids=as_json(ids)).fetchall())
        return [row[0] for row in rows]

    async def states(self, *, tenant: TenantId | None = None) -> Mapping[State, int]:
        """How many messages rest in each state."""
        rows = await self._reader.ask(
            lambda db: (
                run(db, "states") if tenant is None else run(db, "states_of_tenant", tenant=tenant)
            ).fetchall()
        )
        return {State(state): count for state, count in rows}

"""Queries on connections of their own, beside the writer."""

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import orjson

from carteiro.model import (
    EventType,
    MessageId,
    Recipient,
    RecipientId,
    State,
    StoredMessage,
    TenantId,
    TimelineEvent,
)
from carteiro.stores.sqlite.opening import connect, in_our_words
from carteiro.stores.sqlite.rows import as_json, message_of, moment, recipient_of, run

Result = TypeVar("Result")


class Reader:
    """One reading connection in a thread of its own: a slow query stops neither the loop nor the writer."""

    def __init__(self, path: Path, *, busy_timeout_ms: int) -> None:
        self._path = path
        self._busy_timeout_ms = busy_timeout_ms
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
                self._connection = connect(self._path, busy_timeout_ms=self._busy_timeout_ms)
            return query(self._connection)


class SqliteReading:
    """See `carteiro.ports.reading.Reading` for what it promises."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def message(
        self, message: MessageId, *, tenant: TenantId | None = None
    ) -> StoredMessage | None:
        """One message with its content; ``tenant`` restricts it to that tenant's."""
        row = await self._reader.ask(
            lambda db: run(db, "message", id=message, tenant=tenant).fetchone()
        )
        return None if row is None else message_of(row)

    async def events(self, message: MessageId) -> list[TimelineEvent]:
        """The timeline of a message, oldest first."""
        rows = await self._reader.ask(lambda db: run(db, "events", id=message).fetchall())
        return [
            TimelineEvent(EventType(name), orjson.loads(metadata), moment(at))
            for name, metadata, at in rows
        ]

    async def recipient(self, recipient: RecipientId, *, tenant: TenantId) -> Recipient | None:
        """One recipient of a tenant, deleted or not."""
        row = await self._reader.ask(
            lambda db: run(db, "recipient", id=recipient, tenant=tenant).fetchone()
        )
        return None if row is None else recipient_of(row)

    async def unsettled(self, ids: Sequence[MessageId]) -> list[MessageId]:
        """Those of the ids whose message is not finished."""
        rows = await self._reader.ask(lambda db: run(db, "unsettled", ids=as_json(ids)).fetchall())
        return [row[0] for row in rows]

    async def states(self) -> Mapping[State, int]:
        """How many messages rest in each state."""
        rows = await self._reader.ask(lambda db: run(db, "states").fetchall())
        return {State(state): count for state, count in rows}

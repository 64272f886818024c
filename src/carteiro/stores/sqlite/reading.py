"""Queries on connections of their own, beside the writer."""

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import orjson

from carteiro.model import (
    LATEST,
    Cursor,
    Depth,
    EventType,
    IdempotencyKey,
    MessageFilter,
    MessageId,
    Page,
    QueuePlace,
    Replayed,
    SendLimit,
    State,
    StoredMessage,
    TenantId,
    TimelineEvent,
)
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND, is_live
from carteiro.policy.pacing import Pace
from carteiro.stores.sqlite.accept import firsts_under
from carteiro.stores.sqlite.lists import find_messages
from carteiro.stores.sqlite.opening import connect, in_our_words
from carteiro.stores.sqlite.rows import as_json, in_ms, maybe_moment, message_of, moment, run

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

    def __init__(self, reader: Reader, clock: Callable[[], int]) -> None:
        self._reader = reader
        self._clock = clock

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
            lambda db: find_messages(db, wanted, cursor=cursor, limit=limit)
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
        return None if row is None else _place(row, now)

    async def depths(self) -> list[Depth]:
        """How much is in the queue, by kind; costs the same however much that is."""
        now = self._clock()
        rows = await self._reader.ask(
            lambda db: run(db, "depths", now=now, longest=LONGEST_HOLD_MS).fetchall()
        )
        return [
            Depth(kind, unfinished, in_flight, None if since is None else moment(min(since, now)))
            for kind, unfinished, in_flight, since in rows
        ]

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


def _place(row: Sequence[Any], now: int) -> QueuePlace:
    parked_until, has_claim, claims, wakes_at, in_flight, *limit = row
    is_leased = bool(has_claim) and is_live(parked_until, now)
    is_parked = is_leased or (not has_claim and (parked_until or 0) > now)
    return QueuePlace(
        parked_until=maybe_moment(parked_until if is_parked else None),
        is_claimed=is_leased,
        claims=claims,
        tenant_wakes_at=_still_to_come(wakes_at, now),
        tenant_in_flight=in_flight,
        limited_until=_still_to_come(_limited_until(*limit, now=now), now),
    )


def _limited_until(count: int | None, per_ms: int, next_us: int, *, now: int) -> int | None:
    """When the send limit of a kind lets the next job go; None if it would now."""
    if count is None:
        return None
    pace = Pace.of(SendLimit(count, per_ms * MILLISECOND))
    return None if pace.tokens(next_us, now * 1000) else -(-pace.wakes_at_us(next_us) // 1000)


def _still_to_come(at: int | None, now: int) -> datetime | None:
    """A moment that lies ahead; what never comes is put off as far as moments go."""
    return None if at is None or at <= now else moment(min(at, in_ms(LATEST)))

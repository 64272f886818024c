"""The target of a move: a database that triggers fence until it is complete, with a transaction for each page."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import orjson

from carteiro.errors import CannotMove
from carteiro.model import value
from carteiro.ports.moving import Reached, Rows
from carteiro.stores.postgres.database import Database, Session, sql
from carteiro.stores.postgres.migrating import migrate
from carteiro.stores.postgres.options import PostgresOptions
from carteiro.stores.sql.audit import Noted, note

_MARK = "moved_from"
_UNHURRIED = timedelta(days=1)  # counting and indexing take as long as there are rows
_BY_SETTINGS = frozenset(
    {"tiers", "ring_clock", "audit"}
)  # every process creates these at its start
_TRUTHS = frozenset(
    {
        *(
            "paused",
            "disabled",
            "external_id_is_key",
            "declares",
            "is_email",
            "is_active",
            "is_clean",
        ),
        *("one_click_unsubscribe", "automatic_redrive"),
    }
)


@value
class _Mark:
    """The state of the move, in the target; ``last_no``: number of the last message, once it is finished."""

    move: str
    source: str
    reached: Mapping[str, Reached]
    last_no: int | None = None
    is_abandoned: bool = False

    @classmethod
    def read(cls, text: str) -> "_Mark":
        """As it was stored."""
        stored = orjson.loads(text)
        reached = {table: Reached(**each) for table, each in stored.pop("reached").items()}
        return cls(reached=reached, **stored)

    def text(self) -> str:
        """As it is stored."""
        return orjson.dumps(asdict(self)).decode()

    def further(self, table: str, page: Rows) -> "_Mark":
        """The state after one more page."""
        before = self.reached.get(table, Reached())
        after = Reached(before.rows + len(page.rows), list(page.place), is_done=not page.rows)
        return replace(self, reached={**self.reached, table: after})


class PostgresTarget:
    """See `carteiro.ports.moving.Target` for what it promises."""

    def __init__(self, db: Database) -> None:
        self.name = db.name
        self._db = db
        self._mark: _Mark | None = None  # as this process stored it

    async def begin(self, move: str, *, source: str) -> Mapping[str, Reached] | None:
        """Fence the store for the move; return the progress, None if it is finished."""
        async with self._transaction() as session:
            found = await _found(session)
            if found is not None and found.move == move:
                self._mark = found
                return None if found.last_no is not None else found.reached
            if found is None:  # before anything is locked: the store may be in use
                await self._refuse_taken(session, found)
            await _fence(session)
            if found is not None and (found.is_abandoned or not found.reached):
                await session.connection.execute(sql("move_empty"))
            await self._refuse_taken(session, found)
            await session.connection.execute(sql("move_clear"))
            self._mark = _Mark(move, source, {})
            await _store(session, self._mark)
            return {}

    async def take(self, table: str, page: Rows) -> None:
        """Store a page and the progress of the move, in one transaction."""
        async with self._transaction() as session:
            mark = await self._ours(session)
            if page.rows and table == "jobs":
                await session.fetch("move_jobs", *map(list, zip(*page.rows, strict=True)))
            elif page.rows:
                await session.connection.copy_records_to_table(
                    table, schema_name="carteiro", columns=page.columns, records=_records(page)
                )
            further = mark.further(table, page)
            await _store(session, further)
        self._mark = further

    async def finish(self, counts: Mapping[str, int]) -> None:
        """Open the store if the row counts match; else raise `CannotMove` and stay fenced."""
        now = await self._db.now()
        async with self._transaction() as session:
            mark = await self._ours(session)
            await session.fetch("lock_ring")
            self._compare(counts, dict(await session.fetch("move_counts")))
            last_no = await session.value("move_numbers")
            await session.fetch("rebuild_ring", now=now)
            rows = {"rows": counts["messages"]}
            await note(session, now, Noted("move", "store", mark.source, after=rows))
            finished = replace(mark, last_no=last_no)
            await _store(session, finished)
            await session.connection.execute(sql("move_unfence"))
            await session.connection.execute("SET LOCAL synchronous_commit = on")
        self._mark = finished

    async def abandon(self, move: str) -> None:
        """Fence the store for good, as the source opens again; `CannotMove` if it was used since."""
        async with self._transaction() as session:
            await _fence(session)
            found = await _found(session)
            if found is None or found.move != move:
                await self._refuse_taken(session, found)
                await session.connection.execute(sql("move_unfence"))
                return
            if found.last_no is not None:
                await self._refuse_used(session, found.last_no)
            await _store(session, replace(found, last_no=None, is_abandoned=True))

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Session]:
        async with self._db.transaction() as session:
            await session.fetch("move_allow")
            yield session

    async def _ours(self, session: Session) -> _Mark:
        """The mark, if no other process has changed it."""
        found = await _found(session)
        if found is None or found != self._mark:
            raise CannotMove(f"another carteiro move is filling {self.name}: let it end")
        return found

    async def _refuse_taken(self, session: Session, found: _Mark | None) -> None:
        counts = dict(await session.fetch("move_counts"))
        held = [f"{count:,} {table}" for table, count in counts.items() if count]
        if not [each for each in counts if counts[each] and each not in _BY_SETTINGS]:
            return
        whose = "" if found is None else f", of a move from {found.source}"
        text = (
            f"{self.name} is not empty ({', '.join(held)}{whose}): name a new database, "
            "or DROP SCHEMA carteiro CASCADE if nothing in it is needed"
        )
        raise CannotMove(text)

    async def _refuse_used(self, session: Session, last_no: int) -> None:
        since = await session.first("move_since", last_no)
        if any(since):
            accepted, changed, leased = since
            text = (
                f"{self.name} is in use already: {accepted:,} messages accepted, {changed:,} changed, "
                f"{leased:,} in flight since the move. Opening the source again could send twice"
            )
            raise CannotMove(text)

    def _compare(self, before: Mapping[str, int], after: Mapping[str, int]) -> None:
        differ = [
            f"{table}: {before.get(table, 0):,} before, {after.get(table, 0):,} after"
            for table in sorted({*before, *after})
            if before.get(table, 0) != after.get(table, 0)
        ]
        if differ:
            text = (
                f"{self.name} does not hold what was to be carried over ({'; '.join(differ)}): it stays "
                "closed; undo the move with --reopen, and start again"
            )
            raise CannotMove(text)


@asynccontextmanager
async def open_target(url: str, options: PostgresOptions) -> AsyncIterator[PostgresTarget]:
    """Connect and bring the schema up to date, to fill the database."""
    await migrate(url)
    db = Database(url, replace(options, command_timeout=_UNHURRIED, connections=1))
    await db.open()
    try:
        yield PostgresTarget(db)
    finally:
        await db.close()


async def _fence(session: Session) -> None:
    await session.connection.execute(sql("move_fence"))


async def _found(session: Session) -> _Mark | None:
    text = await session.value("move_mark")
    return None if text is None else _Mark.read(text)


async def _store(session: Session, mark: _Mark) -> None:
    await session.run("override_set", name=_MARK, setting=mark.text())


def _records(page: Rows) -> Sequence[Sequence[Any]]:
    """The rows in the types of the server: booleans were numbers."""
    truths = [index for index, name in enumerate(page.columns) if name in _TRUTHS]
    if not truths:
        return page.rows
    changed = [list(row) for row in page.rows]
    for row in changed:
        for index in truths:
            row[index] = bool(row[index])
    return changed

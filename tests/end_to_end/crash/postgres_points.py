"""The crash points inside the transactions of a process on PostgreSQL.

A statement of the store is a transaction by itself, which the server completes without the
process. To die inside one, the process begins and commits it by two calls more, as it does behind a
pooler; to die or stop anywhere else, it is not changed.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from carteiro.stores.postgres.database import Database, Session
from end_to_end.crash.points import Points, under_way

# The rows of a statement that has changed something relevant.
_CHANGES: dict[str, Callable[[list[Any]], bool]] = {
    "alerts_put": lambda _: True,
    "accept": lambda refused: not refused,
    "claim": lambda rows: rows[0][2] != "{}",
    "declare_first": lambda rows: not rows[0][0],  # none was left out
    "extend": bool,
    "inbox_keep": lambda _: True,
    "notice_drop": lambda _: True,
    "notices_new": bool,
    "reap": lambda rows: rows[0][0] > 0,
    "redrives_add": lambda _: True,
    "redrives_change": lambda _: True,
    "rollup_take": bool,
    "release": lambda rows: bool(rows[0][0]),
    "save": lambda rows: bool(rows[0][0]),
    "settle_sent": lambda rows: not rows[0][0],
}


@contextmanager
def points_inside_postgres(points: Points) -> Iterator[None]:
    """Put points into the transactions of this process, until the block ends."""
    session, transaction = Database._session, Database.transaction

    @asynccontextmanager
    async def watched_transaction(self: Database) -> AsyncIterator[Session]:
        name = under_way.get()
        async with transaction(self) as plain:
            watched = _WatchedSession(plain.connection, points, name)
            yield watched
            if watched.has_changed:
                points.reach(f"{name}.uncommitted")
        if watched.has_changed:
            points.reach(f"{name}.committed")

    @asynccontextmanager
    async def watched_session(self: Database) -> AsyncIterator[Session]:
        name = under_way.get()
        if name and points.is_inside:
            async with watched_transaction(self) as session_inside:
                yield session_inside
            return
        async with session(self) as plain:
            watched = _WatchedSession(plain.connection, points, "")
            yield watched
        if watched.has_changed and name:
            points.reach(f"{name}.committed")

    Database._session = watched_session  # type: ignore[method-assign]
    Database.transaction = watched_transaction  # type: ignore[method-assign]
    try:
        yield
    finally:
        Database._session = session  # type: ignore[method-assign]
        Database.transaction = transaction  # type: ignore[method-assign]


class _WatchedSession(Session):
    """Knows if something was changed on it."""

    def __init__(self, connection: Any, points: Points, name: str) -> None:
        super().__init__(connection)
        self.has_changed = False
        self._points = points
        self._name = name

    async def fetch(self, operation: str, /, *given: object, **named: object) -> list[Any]:
        rows = await super().fetch(operation, *given, **named)
        self._look(operation, rows)
        return rows

    async def first(self, operation: str, /, *given: object, **named: object) -> Any:
        rows = await self.fetch(operation, *given, **named)
        return rows[0] if rows else None

    async def value(self, operation: str, /, *given: object, **named: object) -> Any:
        row = await self.first(operation, *given, **named)
        return None if row is None else row[0]

    async def run(self, operation: str, /, *given: object, **named: object) -> int:
        count = await super().run(operation, *given, **named)
        self._look(operation, [])
        return count

    def _look(self, operation: str, rows: list[Any]) -> None:
        if self.has_changed or operation not in _CHANGES:
            return
        self.has_changed = _CHANGES[operation](rows)
        if self.has_changed:
            self._points.reach(f"{self._name}.half")

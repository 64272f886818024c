"""The session of the shared ports on SQLite: reads by the reader, writes by the one writer."""

import sqlite3
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any

from carteiro.stores.sql.session import Operation, Result
from carteiro.stores.sqlite.opening import empty_log
from carteiro.stores.sqlite.reader import Reader
from carteiro.stores.sqlite.rows import as_json, run
from carteiro.stores.sqlite.writer import Writer


class SqliteSession:
    """See `carteiro.stores.sql.session.Session`; no method ever suspends."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    async def fetch(self, statement: str, /, **parameters: object) -> list[Any]:
        """Return the rows."""
        return self._cursor(statement, parameters).fetchall()

    async def first(self, statement: str, /, **parameters: object) -> Any:  # noqa: ANN401 - a row, or None
        """Return the first row, None without any."""
        return self._cursor(statement, parameters).fetchone()

    async def value(self, statement: str, /, **parameters: object) -> Any:  # noqa: ANN401 - what the column holds
        """Return the first column of the first row, None without any."""
        row = self._cursor(statement, parameters).fetchone()
        return None if row is None else row[0]

    async def run(self, statement: str, /, **parameters: object) -> int:
        """Return how many rows were written."""
        return self._cursor(statement, parameters).rowcount

    def _cursor(self, statement: str, parameters: dict[str, object]) -> sqlite3.Cursor:
        for name, value in parameters.items():
            if isinstance(value, list | tuple):
                parameters[name] = as_json(value)
        return run(self.connection, statement, **parameters)


class SqliteDatabase:
    """See `carteiro.stores.sql.session.Database`."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    async def now(self) -> int:
        """Return the host's time in milliseconds."""
        return self._clock()

    @property
    def fixed_now(self) -> int:
        """The host's time: SQLite has no clock of its own."""
        return self._clock()

    async def look(self, operation: Operation[Result]) -> Result:
        """Run statements that only read, on the writer's connection: no other thread is woken."""
        return await self.write(operation, durable=False)

    async def read(self, operation: Operation[Result]) -> Result:
        """Run statements that only read, in the reader's thread."""
        return await self._reader.ask(lambda db: finished(operation(SqliteSession(db))))

    async def write(self, operation: Operation[Result], *, durable: bool = True) -> Result:
        """Run statements in the writer's next transaction, in the context of the caller: it knows who acts."""
        context = copy_context()
        return await self._writer.do(
            lambda db: context.run(finished, operation(SqliteSession(db))), durable=durable
        )

    async def empty_log(self) -> None:
        """Remove deleted rows from the write-ahead log."""
        await self._reader.ask(empty_log)

    async def fetch(self, statement: str, /, **parameters: object) -> list[Any]:
        """Return the rows."""
        return await self.read(lambda session: session.fetch(statement, **parameters))

    async def first(self, statement: str, /, **parameters: object) -> Any:  # noqa: ANN401 - a row, or None
        """Return the first row, None without any."""
        return await self.read(lambda session: session.first(statement, **parameters))

    async def value(self, statement: str, /, **parameters: object) -> Any:  # noqa: ANN401 - what the column holds
        """Return the first column of the first row, None without any."""
        return await self.read(lambda session: session.value(statement, **parameters))

    async def run(self, statement: str, /, **parameters: object) -> int:
        """Return how many rows were written."""
        return await self.write(lambda session: session.run(statement, **parameters))


def finished(operation: Coroutine[Any, Any, Result]) -> Result:
    """Run an operation to its end at once: it has nothing to wait for."""
    try:
        operation.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    operation.close()
    raise RuntimeError("An operation on SQLite must not wait: it holds the writer")

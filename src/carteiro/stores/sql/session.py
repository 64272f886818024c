"""The session that the shared ports need from a SQL store: statements by name, with named parameters.

A list as a parameter is a JSON text on SQLite, for ``json_each``, and an array on Postgres. Of a list of rows, Postgres
takes a column at a time: ``:rows_0`` is the array of the first one.

On SQLite nothing here ever suspends: the writer drives an operation to its end inside its transaction.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeAlias, TypeVar

from carteiro import ports

Result = TypeVar("Result")


class Wake(ports.Wake, Protocol):
    """Wakes idle workers."""

    async def tell(self) -> None:
        """Wake workers here and in other processes: there may be work."""


class Session(Protocol):
    """Runs statements, one after the other."""

    async def fetch(self, statement: str, /, **parameters: object) -> list[Any]:
        """Return the rows."""

    async def first(self, statement: str, /, **parameters: object) -> Any:  # noqa: ANN401 - a row, or None
        """Return the first row, None without any."""

    async def value(self, statement: str, /, **parameters: object) -> Any:  # noqa: ANN401 - what the column holds
        """Return the first column of the first row, None without any."""

    async def run(self, statement: str, /, **parameters: object) -> int:
        """Return the number of written rows."""


Operation: TypeAlias = Callable[[Session], Coroutine[Any, Any, Result]]


class Database(Session, Protocol):
    """One database. Its own `fetch`, `first` and `value` read, its `run` writes: one statement by itself each."""

    async def now(self) -> int:
        """Return the store's time in milliseconds. Ask before an operation, never inside one."""

    @property
    def fixed_now(self) -> int | None:
        """The time for a statement that reads the clock when it runs; None: it reads its server's."""

    async def look(self, operation: Operation[Result]) -> Result:
        """Run statements that only read, as fast as possible; each sees what others have committed before it."""

    async def read(self, operation: Operation[Result]) -> Result:
        """Run statements that only read, with plans that use indexes regardless of statistics."""

    async def write(self, operation: Operation[Result], *, durable: bool = True) -> Result:
        """Run statements in one transaction: all or nothing. Unless ``durable``, a crash may undo it later."""

    async def empty_log(self) -> None:
        """Remove rows that were just deleted from the write-ahead log, too."""

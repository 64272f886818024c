"""Access to the server: a pool of connections, statements by name, the driver's errors as our own.

Its life: `open` connects and brings the schema up to date; `fetch` and `transaction` borrow a connection each; `close`
waits for running statements. If a connection breaks, the caller gets `StoreUnavailable` and may try again; the next
call makes a new connection.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import cache
from typing import Any

import asyncpg

from carteiro.errors import (
    CarteiroError,
    ConfigError,
    StoreError,
    StoreFull,
    StoreUnavailable,
    TextUnfit,
)
from carteiro.policy.masking import place_of, without_quoted
from carteiro.stores.postgres.options import PostgresOptions
from carteiro.stores.sql.session import Operation, Result
from carteiro.stores.statements import numbered, statements_of

_PACKAGE = "carteiro.stores.postgres"
_CLOCK_GOOD_FOR_S = 10.0  # then the server's clock is read again
_CLOCK_TRIES = 3
_PROMPT_MS = 10
_A_CLOCK_ASKED = "SELECT carteiro.now_ms()"
# The server ends a transaction that stands still: others wait for its locks.
_LONGEST_PAUSE = "10s"
_PAUSE = "idle_in_transaction_session_timeout"
_MOST_DEADLOCKS = 5
# All that the driver raises: its own errors have no root in common.
FAILURES = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
# Errors that the driver raises while it parses an address; some are built-in ones.
_ABOUT_THE_ADDRESS = (asyncpg.exceptions.ClientConfigurationError,)
_OF_A_POOLER = (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)
_TRANSIENT = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.TooManyConnectionsError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.ReadOnlySQLTransactionError,  # a replica: another server is the primary now
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)


@cache
def _statement(operation: str) -> tuple[str, list[str]]:
    return numbered(statements_of(_PACKAGE)[operation])


def sql(operation: str) -> str:
    """Return the text of a statement, its parameters numbered."""
    return _statement(operation)[0]


def _asked(operation: str, given: Iterable[object], named: Mapping[str, Any]) -> list[Any]:
    """The text of a statement, then its parameters in their order."""
    text, names = _statement(operation)
    return [text, *given, *[named[n] if n in named else _column(n, named) for n in names]]


def _column(name: str, named: Mapping[str, Any]) -> list[Any]:
    """``rows_1`` is the second column of the list ``rows``."""
    rows, _, column = name.rpartition("_")
    return [row[int(column)] for row in named[rows]]


class _Connection(asyncpg.Connection):
    """A connection without a reset on its return to the pool: nobody leaves state, and a reset costs a round trip."""

    def get_reset_query(self) -> str:
        """Nothing."""
        return ""


class _Pool(asyncpg.Pool):
    """A pool that takes a connection back at once: asyncpg's makes a task for that, and each statement waits for it."""

    async def release(self, connection: Any, *, timeout: float | None = None) -> None:  # noqa: ANN401 - asyncpg's
        """Mostly nothing is awaited. If the caller is cancelled while something is, the connection is closed."""
        one, holder = connection._con, connection._holder  # noqa: SLF001 - it shows them to nobody
        if one is not None:
            one._on_release()  # noqa: SLF001 - as above
            await holder.release(holder._timeout if timeout is None else timeout)  # noqa: SLF001 - as above


class Session:
    """One connection, while it is borrowed."""

    def __init__(self, connection: Any) -> None:  # noqa: ANN401 - a pool's proxy has no type of its own
        self.connection = connection

    async def fetch(self, operation: str, /, *given: object, **named: object) -> list[Any]:
        """Return the rows."""
        rows: list[Any] = await self.connection.fetch(*_asked(operation, given, named))
        return rows

    async def first(self, operation: str, /, *given: object, **named: object) -> Any:  # noqa: ANN401 - a row, or None
        """Return the first row, None without any."""
        return await self.connection.fetchrow(*_asked(operation, given, named))

    async def value(self, operation: str, /, *given: object, **named: object) -> Any:  # noqa: ANN401 - what the column holds
        """Return the first column of the first row, None without any."""
        return await self.connection.fetchval(*_asked(operation, given, named))

    async def run(self, operation: str, /, *given: object, **named: object) -> int:
        """Return how many rows were written."""
        status: str = await self.connection.execute(*_asked(operation, given, named))
        return int(status.rpartition(" ")[2])


class Database:
    """One database. It belongs to the event loop that opened it."""

    def __init__(self, url: str, options: PostgresOptions) -> None:
        self._url = url
        self.name = described(url)
        self._options = options
        self._pool: Any = None
        self._ahead_ms = 0  # of the server's clock, ahead of ours
        self._clock_read_at = -_CLOCK_GOOD_FOR_S
        self._pids: set[int] = set()

    async def open(self) -> None:
        """Connect; the schema must be there."""
        prepares = self._options.prepared_statements
        with address_read(self.name), self.in_our_words():
            self._pool = await _Pool(
                self._url,
                min_size=0,  # the caller connects, and gets the error; a background task would only log it
                max_size=self._options.connections,
                max_queries=50_000,
                setup=None,
                loop=None,
                record_class=asyncpg.Record,
                command_timeout=self._options.command_timeout.total_seconds(),
                statement_cache_size=512 if prepares else 0,
                max_inactive_connection_lifetime=300,
                connection_class=_Connection,
                init=self._connected if prepares else None,
                # A pooler refuses this at once, before it can mix up prepared statements.
                server_settings={_PAUSE: _LONGEST_PAUSE} if prepares else None,
            )
            await self._read_clock()

    async def _connected(self, connection: Any) -> None:  # noqa: ANN401 - asyncpg's
        pid: int = connection.get_server_pid()  # a closed connection no longer knows it
        self._pids.add(pid)
        connection.add_termination_listener(lambda _: self._pids.discard(pid))

    def is_ours(self, pid: int) -> bool:
        """True if this server process serves one of our connections; unknown behind a pooler."""
        return pid in self._pids

    async def close(self) -> None:
        """Close idle connections now, and the others when they are returned."""
        if self._pool is None:
            return
        try:
            async with asyncio.timeout(self._options.command_timeout.total_seconds()):
                await self._pool.close()
        except Exception:  # noqa: BLE001 - an unreachable server must not prevent the end
            self._pool.terminate()

    # --- statements

    async def fetch(self, operation: str, /, *given: object, **named: object) -> list[Any]:
        """Return the rows."""
        rows: list[Any] = await self._alone(lambda one: one.fetch(operation, *given, **named))
        return rows

    async def first(self, operation: str, /, *given: object, **named: object) -> Any:  # noqa: ANN401 - a row, or None
        """Return the first row, None without any."""
        return await self._alone(lambda one: one.first(operation, *given, **named))

    async def value(self, operation: str, /, *given: object, **named: object) -> Any:  # noqa: ANN401 - what the column holds
        """Return the first column of the first row, None without any."""
        return await self._alone(lambda one: one.value(operation, *given, **named))

    async def run(self, operation: str, /, *given: object, **named: object) -> int:
        """Return how many rows were written."""
        return await self._alone(lambda one: one.run(operation, *given, **named))

    async def look(self, operation: Operation[Result]) -> Result:
        """Run statements that only read, each by itself."""
        return await operation(self)

    async def read(self, operation: Operation[Result]) -> Result:
        """Run statements that only read, with plans that use indexes regardless of statistics."""
        async with self.transaction() as session:
            await session.fetch("by_index")
            return await operation(session)

    async def write(self, operation: Operation[Result], *, durable: bool = True) -> Result:  # noqa: ARG002 - see below
        """Run statements in one transaction; one that need not be durable says so itself."""
        return await again_after_deadlock(self.transaction, operation)

    async def empty_log(self) -> None:
        """Do nothing: the server manages its own log, and its vacuum frees the space of deleted rows."""

    async def _alone(self, statement: Callable[[Session], Awaitable[Result]]) -> Result:
        """Run a statement by itself."""
        return await again_after_deadlock(self._session, statement)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """All or nothing: an exception rolls the block back."""
        with self.in_our_words():
            async with self._connection() as connection, connection.transaction():
                if not self._options.prepared_statements:
                    await connection.execute(f"SET LOCAL {_PAUSE} = '{_LONGEST_PAUSE}'")
                yield Session(connection)

    def _session(self) -> AbstractAsyncContextManager[Session]:
        """A connection for one statement.

        A pooler may give the server process to another client between prepare and execute, unless both are in a
        transaction. With statements that stay prepared there is no such gap.
        """
        is_safe = self._options.prepared_statements
        return self.outside_transactions() if is_safe else self.transaction()

    @asynccontextmanager
    async def outside_transactions(self) -> AsyncIterator[Session]:
        """A connection for statements that are transactions by themselves, as VACUUM must be."""
        with self.in_our_words():
            async with self._connection() as connection:
                yield Session(connection)

    def _connection(self) -> Any:  # noqa: ANN401 - asyncpg's
        """Borrow a connection. A silent server does not answer a cancel either, so the wait for it is limited."""
        return self._pool.acquire(timeout=self._options.command_timeout.total_seconds())

    # --- time

    async def now(self) -> int:
        """The server's time in milliseconds: read from time to time, computed from our clock in between."""
        if self._options.clock is not None:
            return self._options.clock()
        if time.monotonic() - self._clock_read_at > _CLOCK_GOOD_FOR_S:
            with self.in_our_words():
                await self._read_clock()
        return self._ahead_ms + _monotonic_ms()

    @property
    def fixed_now(self) -> int | None:
        """The time that replaces the server's own, if a clock was given."""
        return None if self._options.clock is None else self._options.clock()

    async def _read_clock(self) -> None:
        """Read the server's clock; repeat if the answer took long, because it is then inexact.

        A small difference comes from the network, not from the clock: our time continues, and never goes back.
        """
        if self._options.clock is not None:
            return
        took, ahead = await self._clock_asked()
        for _ in range(_CLOCK_TRIES):
            if took <= _PROMPT_MS:
                break
            took, ahead = min((took, ahead), await self._clock_asked())
        if abs(ahead - self._ahead_ms) > max(took, _PROMPT_MS):
            self._ahead_ms = ahead
        self._clock_read_at = time.monotonic()

    async def _clock_asked(self) -> tuple[int, int]:
        """The duration of the call, and the lead of the server's clock over ours."""
        async with self._session() as session:
            asked = _monotonic_ms()
            now_ms: int = await session.connection.fetchval(_A_CLOCK_ASKED)
            took = _monotonic_ms() - asked
        return took, now_ms - asked - took // 2

    # --- errors

    @contextmanager
    def in_our_words(self) -> Iterator[None]:
        """Turn errors of the server into our own, which say what to do next."""
        try:
            yield
        except StoreError:
            raise
        except FAILURES as error:
            raise translated(error, self.name) from error


async def again_after_deadlock(
    opened: Callable[[], AbstractAsyncContextManager[Session]],
    operation: Callable[[Session], Awaitable[Result]],
) -> Result:
    """Run an operation; after a deadlock, of which the server has undone everything, run it again."""
    for _ in range(_MOST_DEADLOCKS):
        try:
            async with opened() as session:
                return await operation(session)
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, asyncpg.DeadlockDetectedError):
                raise
            deadlock = error
    raise deadlock


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def described(url: str) -> str:
    """The address without secrets."""
    return f"postgresql://{place_of(url)}"


@contextmanager
def address_read(name: str) -> Iterator[None]:
    """Wraps connecting: an address that the driver cannot parse is a wrong setting."""
    try:
        yield
    except CarteiroError:
        raise
    except (ValueError, OverflowError) as error:
        raise _unreadable(error, name) from None


def _unreadable(error: Exception, name: str) -> ConfigError:
    said = without_quoted(str(error)).rstrip(".")
    return ConfigError(f"{name}: the address in store cannot be used: {said}; correct it")


def translated(  # noqa: C901, PLR0911 - a table, one error a line
    error: BaseException, name: str
) -> CarteiroError:
    """Our own error for an error of the driver."""
    if isinstance(error, asyncpg.CharacterNotInRepertoireError):
        return TextUnfit()
    if isinstance(error, asyncpg.DataError) and isinstance(error.__cause__, UnicodeEncodeError):
        return TextUnfit(error.__cause__)
    if isinstance(error, _ABOUT_THE_ADDRESS):
        return _unreadable(error, name)
    if isinstance(error, asyncpg.DiskFullError | asyncpg.OutOfMemoryError):
        return StoreFull(f"{name} has no room left: free some space ({error})")
    if isinstance(
        error, asyncpg.InvalidPasswordError | asyncpg.InvalidAuthorizationSpecificationError
    ):
        return StoreUnavailable(f"{name} does not let us in: check user and password ({error})")
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return StoreUnavailable(f"{name}: there is no such database; create it: {error}")
    if isinstance(error, _OF_A_POOLER) or "startup parameter" in str(error):
        text = "a pooler is in between: set postgres.prepared_statements = false"
        return StoreUnavailable(f"{name}: {text}")
    if isinstance(error, asyncpg.ObjectNotInPrerequisiteStateError):  # a move is running
        return StoreUnavailable(f"{name}: {error}")
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return StoreError(f"{name}: the user may not do that: {error}")
    if isinstance(error, _TRANSIENT):
        said = str(error) or type(error).__name__
        return StoreUnavailable(
            f"{name} cannot be reached, or stopped answering: {said}; try again"
        )
    return StoreError(f"{name}: {error}")

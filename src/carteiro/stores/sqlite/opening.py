"""Opens the file: connections, the schema and its migrations, SQLite's errors as our own."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from carteiro import errors
from carteiro.stores.migrations import Migration, migrations_of, pending
from carteiro.stores.statements import statements_of

_OLDEST_SQLITE = (3, 38, 0)  # STRICT tables, RETURNING and the -> operator
_A_MOMENT_S = 0.005
INCREMENTAL = 2  # of auto_vacuum: free pages are returned on request
PACKAGE = "carteiro.stores.sqlite"


def connect(path: Path, *, busy_timeout_ms: int, durable: bool = True) -> sqlite3.Connection:
    """A connection with our pragmas; one thread at a time may use it."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        needed = ".".join(map(str, _OLDEST_SQLITE))
        text = (
            f"SQLite {sqlite3.sqlite_version} is too old: use a Python built with {needed} or newer"
        )
        raise errors.StoreError(text)
    create_private(path)
    with in_our_words(path):
        connection = sqlite3.connect(
            path,
            timeout=busy_timeout_ms / 1000,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            synchronous = "FULL" if durable else "OFF"  # FULL: a 202 survives a power cut
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            # A new file becomes able to shrink, before its first table; an older one when it is compacted.
            [kind] = connection.execute("PRAGMA auto_vacuum").fetchone()
            if kind != INCREMENTAL:  # setting it again would write to the file
                connection.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
            _use_wal(connection, patience_s=busy_timeout_ms / 1000)
            connection.execute("PRAGMA secure_delete = ON")  # deleted data is overwritten
            connection.execute("PRAGMA cache_size = -32768")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("PRAGMA wal_autocheckpoint = 8000")  # pages: fewer checkpoints
        except sqlite3.Error:
            connection.close()
            raise
    return connection


def create_private(path: Path) -> None:
    """Create a missing file that only its owner can read: it contains mail. SQLite's other files get the same mode.

    If this fails, SQLite reports why.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def empty_log(connection: sqlite3.Connection) -> None:
    """Checkpoint and truncate the write-ahead log, if nobody uses it now: it still holds deleted data."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _use_wal(connection: sqlite3.Connection, *, patience_s: float) -> None:
    """Switch to the write-ahead log; while another process does so, SQLite reports busy without waiting."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > deadline:
                raise
            time.sleep(_A_MOMENT_S)
        else:
            return


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the schema up to date; safe when many processes start at once."""
    with in_our_words(path):
        if not _pending(connection, path):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            _apply(connection, path)
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def _pending(connection: sqlite3.Connection, path: Path) -> list[Migration]:
    return pending(PACKAGE, version(connection), digest(connection), str(path))


def _apply(connection: sqlite3.Connection, path: Path) -> None:
    migrations = _pending(connection, path)  # check again, now that no other process can write
    if version(connection) == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise errors.StoreError(f"{path} is a database of another program: name another file")
    for migration in migrations:
        for statement in split(migration.script):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {migration.number}")
        connection.execute(f"PRAGMA application_id = {migration.digest}")


def newest_version() -> int:
    """The version of the schema that this program writes."""
    return migrations_of(PACKAGE)[-1].number


def digest(connection: sqlite3.Connection) -> int:
    """The digest of the migrations that made the schema of a file."""
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def version(connection: sqlite3.Connection) -> int:
    """The version of the schema in a file; 0 if there is none."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def split(script: str) -> Iterator[str]:
    """The statements of a script, one by one."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def sql(operation: str) -> str:
    """Return the text of a statement."""
    return statements_of(PACKAGE, has_schema=False)[operation]


@contextmanager
def in_our_words(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into our own, which say what to do next."""
    try:
        yield
    except (sqlite3.Error, UnicodeEncodeError) as error:
        raise translated(error, path) from error


def translated(  # noqa: PLR0911 - a table, one error a code
    error: sqlite3.Error | UnicodeEncodeError, path: Path
) -> errors.CarteiroError:
    """Our own error for an error of SQLite."""
    if isinstance(error, UnicodeEncodeError):
        return errors.TextUnfit(error)
    full_code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if full_code == sqlite3.SQLITE_CONSTRAINT_TRIGGER:  # only a move has triggers
        return errors.StoreMoved(str(error))
    code = full_code & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return errors.StoreFull(f"No room left on the disk of {path}: free some space")
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return errors.StoreCorrupt(f"{path} is damaged or not a database: restore it from a backup")
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}:
        return errors.StoreUnavailable(
            f"{path} or its folder cannot be written: check its permissions"
        )
    if code == sqlite3.SQLITE_CANTOPEN:
        return errors.StoreUnavailable(
            f"{path} cannot be opened: check that its folder exists and can be written"
        )
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return errors.StoreUnavailable(f"{path} is locked by another process: try again")
    if code == sqlite3.SQLITE_IOERR:
        return errors.StoreUnavailable(
            f"Reading or writing {path} failed ({error}): check the disk"
        )
    return errors.StoreError(f"{path}: {error}")

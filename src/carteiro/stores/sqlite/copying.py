"""Copies the file while others write, and compacts it; each on a connection of its own."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from uuid import uuid4

from carteiro.errors import CannotBackUp
from carteiro.runtime.durable_file import sync_folder
from carteiro.stores.sqlite.opening import connect, create_private, in_our_words

_PAGES_A_STEP = 2000  # after each, other threads run and the progress is reported


def copy(path: Path, target: Path, progress: Callable[[float], None], *, busy_ms: int) -> None:
    """Copy the file as of now; the copy gets its name when it is complete and on the disk."""
    _refuse_taken(target)
    unfinished = target.with_name(f".{target.name}.{uuid4().hex}.part")
    create_private(unfinished)
    try:
        with in_our_words(target):
            _copy(path, unfinished, progress, busy_ms=busy_ms)
        _refuse_taken(target)
        unfinished.rename(target)
    finally:
        unfinished.unlink(missing_ok=True)
    sync_folder(target.parent)


def _copy(path: Path, target: Path, progress: Callable[[float], None], *, busy_ms: int) -> None:
    def tell(_status: int, remaining: int, total: int) -> None:
        progress(1 - remaining / total if total else 1.0)

    with (
        closing(connect(path, busy_timeout_ms=busy_ms)) as source,
        closing(sqlite3.connect(target)) as copied,
    ):
        # One read transaction for the whole copy: concurrent writes are not seen, and do not restart the copy.
        source.execute("BEGIN")
        source.execute("PRAGMA user_version").fetchone()
        source.backup(copied, pages=_PAGES_A_STEP, progress=tell)
        source.execute("COMMIT")


def vacuum(path: Path, *, busy_ms: int) -> int:
    """Rewrite the file without its free pages; return the number of bytes freed."""
    with in_our_words(path), closing(connect(path, busy_timeout_ms=busy_ms)) as connection:
        before = _size(path)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return max(0, before - _size(path))


def _size(path: Path) -> int:
    """Bytes of the file and of its write-ahead log."""
    log = path.with_name(f"{path.name}-wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)


def _refuse_taken(target: Path) -> None:
    if target.exists():
        raise CannotBackUp(f"{target} exists already: name another file, or move it away")

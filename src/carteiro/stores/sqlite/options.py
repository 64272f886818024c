"""Options of the store, in addition to its file."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from carteiro.model import value
from carteiro.stores.sql.options import SqlOptions


def wall_clock_ms() -> int:
    """The host's clock: SQLite has none of its own."""
    return time.time_ns() // 1_000_000


@value
class SqliteOptions(SqlOptions):
    """In addition: the clock, the limits of the file, and how it is written."""

    clock: Callable[[], int] = wall_clock_ms
    min_free_bytes: int = 0  # below it accept refuses, so that settles still have space
    busy_timeout_ms: int = 5000
    free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path.parent).free
    durable: bool = True  # else nothing is synced to the disk: the file is deleted with its process

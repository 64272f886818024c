"""Options of the store, in addition to its file."""

import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from carteiro.model import Fairness, value
from carteiro.policy.lifecycle import MILLISECOND


def wall_clock_ms() -> int:
    """The host's clock: SQLite has none of its own."""
    return time.time_ns() // 1_000_000


def _free_bytes(path: Path) -> int:
    return shutil.disk_usage(path.parent).free


@value
class SqliteOptions:
    """Clock, sharing, lifetimes and limits."""

    clock: Callable[[], int] = wall_clock_ms
    fairness: Fairness = Fairness()
    dead_letter_ttl: timedelta = timedelta(days=7)
    min_free_bytes: int = 0  # below it accept refuses, so that settles still have space
    busy_timeout_ms: int = 5000
    free_bytes: Callable[[Path], int] = _free_bytes
    durable: bool = True  # else nothing is synced to the disk: the file is deleted with its process
    has_queue: bool = True  # else a separate queue has the jobs

    @property
    def dead_letter_ttl_ms(self) -> int:
        """As it is stored."""
        return self.dead_letter_ttl // MILLISECOND

"""Reads on a connection of its own, parallel to the writer."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from carteiro.stores.sqlite.opening import connect, in_our_words

Result = TypeVar("Result")


class Reader:
    """One connection for reads in a thread of its own: a slow query blocks neither the loop nor the writer."""

    def __init__(self, path: Path, *, busy_timeout_ms: int, durable: bool = True) -> None:
        self._path = path
        self._busy_timeout_ms = busy_timeout_ms
        self._is_durable = durable
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="carteiro-reader")
        self._connection: sqlite3.Connection | None = None

    async def ask(self, query: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run a query in the reader's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, query)

    def close(self) -> None:
        """Finish queued queries, then close."""
        self._thread.shutdown(wait=True)
        if self._connection is not None:
            self._connection.close()

    def _run(self, query: Callable[[sqlite3.Connection], Result]) -> Result:
        with in_our_words(self._path):
            if self._connection is None:
                self._connection = connect(
                    self._path, busy_timeout_ms=self._busy_timeout_ms, durable=self._is_durable
                )
            return query(self._connection)

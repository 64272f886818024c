"""Wake-up of idle workers: a bell in this process, LISTEN for others.

A separate connection listens. While it is lost the bell rings from time to time, so that waiting workers look for work.
Behind a pooler that shares connections between transactions no notification arrives: a test at the start finds out, and
then the bell rings as if the connection were lost.
"""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from datetime import timedelta

import asyncpg

from carteiro.errors import StoreError
from carteiro.stores.bell import Bell
from carteiro.stores.postgres.database import FAILURES, Database, sql

_CHANGE = "change"
_KIND = "kind "  # then its name: a notification for others is empty
_TRY_AGAIN_S = 1.0
_DEAF_POLL_S = 0.1
_HEARS_WITHIN_S = 2.0
_CHECK_EVERY_S = 15.0


class PostgresWake(Bell):
    """Rings after every change of ours that may make a job ready, and on notifications of other processes."""

    def __init__(self, url: str, db: Database) -> None:
        super().__init__()
        self._url = url
        self._db = db
        self.changes = Bell()  # rings when applications request changes by SQL
        self._listening: asyncio.Task[None] | None = None
        self._waiters = 0

    async def tell(self) -> None:
        """Wake workers here and in other processes: there may be work."""
        self.ring()
        await self._db.fetch("tell")

    async def wait(self, timeout: timedelta, *, since: int, kinds: Collection[str] = ()) -> bool:
        """Return True after a notification for one of the kinds (also without cause), False after ``timeout``."""
        self.listen()
        self._waiters += 1
        try:
            return await super().wait(timeout, since=since, kinds=kinds)
        finally:
            self._waiters -= 1

    def listen(self) -> None:
        """Start to listen, at the first wait: a process that never waits needs no connection for it."""
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())

    async def close(self) -> None:
        """Stop listening."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_on_one_connection()
            except (*FAILURES, StoreError):
                await asyncio.sleep(_TRY_AGAIN_S)
            self.ring()  # notifications in between were lost
            self.changes.ring()

    async def _listen_on_one_connection(self) -> None:
        connection = await asyncpg.connect(self._url, timeout=10, statement_cache_size=0)
        try:
            heard = asyncio.Event()

            def hear(_: object, pid: int, __: str, told: object) -> None:
                heard.set()
                if told == _CHANGE:
                    self.changes.ring()
                elif not self._db.is_ours(pid):
                    # Ours has rung already: looking twice takes twice as long.
                    self.ring((str(told).removeprefix(_KIND),))

            await connection.add_listener(await connection.fetchval(sql("wake_channel")), hear)
            self.ring()  # notifications from before we listened
            self.changes.ring()
            await self._db.fetch("tell")
            with suppress(TimeoutError):
                # `wait_for` may swallow the cancellation.
                async with asyncio.timeout(_HEARS_WITHIN_S):
                    await heard.wait()
            while not connection.is_closed():
                if heard.is_set():
                    await asyncio.sleep(_CHECK_EVERY_S)
                    await connection.fetchval("SELECT 1", timeout=_CHECK_EVERY_S)
                else:
                    await asyncio.sleep(_DEAF_POLL_S)
                    if self._waiters:
                        self.ring()
        finally:
            with suppress(Exception):
                await connection.close(timeout=1)

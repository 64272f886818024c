"""Waits for mails in the sandbox's inbox, in one process: one reader for all who wait, and none while nobody does.

Ten times a second it asks for the newest mail of all their tenants, in one statement. Only when there is a new one
does it read the new mails, once for each tenant, and wake those whose filter matches. Every two seconds each looks by
itself, because the later of two transactions may have the earlier time.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Final

from carteiro.errors import CarteiroError
from carteiro.model import InboxEntry, InboxFilter, Page, TenantId
from carteiro.observability import log
from carteiro.policy.inbox import is_wanted
from carteiro.ports import Inbox

MOST_OF_ONE: Final = 20
MOST_OF_ALL: Final = 100
_EVERY_S: Final = 0.1
_LOOKS_EVERY_S: Final = 2.0
_NEW = timedelta(seconds=5)  # mails of this time before the newest one are looked at again
_MOST_NEW: Final = 100


class _Waiter:
    def __init__(self, wanted: InboxFilter) -> None:
        self.wanted = wanted
        self.news = asyncio.Event()


async def _stays() -> bool:
    return False


class InboxWatch:
    """Callers that wait, each for mails of one tenant."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._waiters: dict[TenantId, set[_Waiter]] = {}
        self._newest: dict[TenantId, datetime] = {}
        self._reader: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """Number of callers that wait."""
        return sum(map(len, self._waiters.values()))

    def is_full_for(self, tenant: TenantId) -> bool:
        """True if nobody else may wait for mails of this tenant."""
        is_full = len(self._waiters.get(tenant, ())) >= MOST_OF_ONE
        return is_full or self.waiting >= MOST_OF_ALL

    def close(self) -> None:
        """End all waits: a process that stops does not keep its callers waiting."""
        self._is_closed = True
        for waiters in self._waiters.values():
            for each in waiters:
                each.news.set()

    async def wait(
        self,
        wanted: InboxFilter,
        *,
        limit: int,
        within: timedelta,
        is_gone: Callable[[], Awaitable[bool]] = _stays,
    ) -> Page[InboxEntry]:
        """The first page that has a match; an empty one after ``within``, or when the caller ``is_gone``.

        ``wanted`` names a tenant. Ask `is_full_for` before.
        """
        until = time.monotonic() + within.total_seconds()
        with self._waiting(wanted) as waiter:
            while True:
                waiter.news.clear()
                page = await self._inbox.find(wanted, limit=limit)
                left = until - time.monotonic()
                if page.rows or left <= 0 or self._is_closed or await is_gone():
                    return page
                with suppress(TimeoutError):
                    await asyncio.wait_for(waiter.news.wait(), min(left, _LOOKS_EVERY_S))

    @contextmanager
    def _waiting(self, wanted: InboxFilter) -> Iterator[_Waiter]:
        if wanted.tenant is None:
            raise ValueError("nobody can wait for mails of all tenants")
        waiter = _Waiter(wanted)
        waiters = self._waiters.setdefault(wanted.tenant, set())
        waiters.add(waiter)
        if self._reader is None:
            self._reader = asyncio.create_task(self._read())
        try:
            yield waiter
        finally:
            waiters.discard(waiter)
            if not waiters:
                del self._waiters[wanted.tenant]
                self._newest.pop(wanted.tenant, None)
            if not self._waiters:
                self._reader.cancel()
                self._reader = None

    async def _read(self) -> None:
        while True:
            try:
                await self._look_for_news()
            except CarteiroError:
                pass  # those who wait get the error at their own next look
            except Exception as error:  # noqa: BLE001 - the next look may succeed
                log.unexpected("inbox.watch", error)
            await asyncio.sleep(_EVERY_S)

    async def _look_for_news(self) -> None:
        for tenant, newest in (await self._inbox.newest(list(self._waiters))).items():
            if newest == self._newest.get(tenant) or tenant not in self._waiters:
                continue
            self._newest[tenant] = newest
            new = InboxFilter(tenant=tenant, since=newest - _NEW)
            entries = (await self._inbox.find(new, limit=_MOST_NEW)).rows
            for waiter in self._waiters.get(tenant, ()):
                if any(is_wanted(each, waiter.wanted) for each in entries):
                    waiter.news.set()

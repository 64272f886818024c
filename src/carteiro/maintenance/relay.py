"""Puts every unfinished message back into a queue that lost it: the queue is an index of the ledger.

Everything is put after the queue was wiped, restored or exchanged, after it was away, and once an hour; what came in
lately is put every second, for whoever accepted it may have died before it could tell the queue. To put what is there
already changes nothing, and what is finished meanwhile is found out when it is claimed.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

from uuid_utils import uuid7

from carteiro.errors import StoreError, StoreUnavailable
from carteiro.model import ZERO, Cursor, DeadLetter, MessageId
from carteiro.observability import log
from carteiro.ports import Wake
from carteiro.ports.ledger import RELAY, LedgerHalf
from carteiro.ports.queue import QueueHalf, QueueMemory

_PAGE = 500
_LEAST_PAUSE_S = 0.05
_LONGEST_LEAVE_S = 1.0
_FULL_EVERY = timedelta(hours=1)


async def relay(
    ledger: LedgerHalf,
    queue: QueueHalf,
    found: Callable[[], Awaitable[str]],
    *,
    every: timedelta = timedelta(seconds=1),
    term: timedelta = timedelta(seconds=13),
) -> None:
    """Relay for ever; ``found`` tells the queue what tenants may have, and answers by which token it is known now.

    ``term``: so long nobody else relays after this process has died.
    """
    work = Relay(ledger, queue, found, term=term)
    try:
        await _relay(work, ledger.backend.wake, every)
    finally:
        await work.leave()


async def _relay(work: "Relay", wake: Wake, every: timedelta) -> None:
    while True:
        rings = wake.rings()
        try:
            await work.round()
        except StoreUnavailable:  # told where it was found out
            await asyncio.sleep(every.total_seconds())
        except Exception as error:  # noqa: BLE001 - the next round may do better, and no loop may end unseen
            log.upkeep_failed("relay", error)
        await asyncio.sleep(_LEAST_PAUSE_S)  # many may ring at once
        await wake.wait(every, since=rings)


class Relay:
    """What one process relays: after an outage of its own, and whatever is due while it leads."""

    def __init__(
        self,
        ledger: LedgerHalf,
        queue: QueueHalf,
        found: Callable[[], Awaitable[str]],
        *,
        term: timedelta,
    ) -> None:
        self._ledger = ledger.ledger
        self._letters = ledger.backend.dead_letters
        self._upkeep = ledger.backend.upkeep
        self._queue = queue.queue
        self._desk = queue.desk
        self._found = found
        self._holder = str(uuid7())
        self._term = term
        self._outages = queue.queue.outages
        self._place: int | None = None  # up to which everything was put
        self._full_at = 0.0

    async def leave(self) -> None:
        """Let others lead at once, and see that nobody relays any more."""
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_LONGEST_LEAVE_S):
                await self._upkeep.lead(RELAY, holder=self._holder, term=ZERO)

    async def round(self) -> None:
        """Put whatever may be missing."""
        is_leader = await self._upkeep.lead(RELAY, holder=self._holder, term=self._term)
        if self._queue.outages != self._outages or (is_leader and await self._is_all_due()):
            await self.put_all()
        elif is_leader and self._place is not None:
            self._place = await self._put_recent(self._place)
        if not is_leader:
            self._place = None

    async def _is_all_due(self) -> bool:
        is_old = time.monotonic() - self._full_at > _FULL_EVERY.total_seconds()
        return self._place is None or is_old or not await self._desk.is_complete()

    async def put_all(self) -> None:
        """Put every unfinished message, and show every dead letter; what is shown and is none is shown no longer."""
        outages = self._queue.outages
        _, place = await self._ledger.recent(after=None, limit=0)
        token = await self._found()
        shown = await self._desk.buried()
        new, cursor = 0, None
        while True:
            page = await self._ledger.unfinished(after=cursor, limit=_PAGE)
            new += await self._queue.put(page.rows)
            cursor = page.next
            if cursor is None:
                break
        await self._show_dead(shown)
        await self._desk.completed(token)
        self._outages, self._place, self._full_at = outages, place, time.monotonic()
        if new:
            log.upkeep_done("relay", count=new)

    async def _show_dead(self, shown: list[MessageId]) -> None:
        """``shown``: what the index showed before; what is no dead letter any more leaves it."""
        kept: set[MessageId] = set()
        cursor: Cursor | None = None
        while True:
            page = await self._letters.find(cursor=cursor, limit=_PAGE)
            await self._desk.bury({letter.id: _expiry_ms(letter) for letter in page.rows})
            kept.update(letter.id for letter in page.rows)
            cursor = page.next
            if cursor is None:
                break
        await self._desk.unbury([message for message in shown if message not in kept])

    async def _put_recent(self, place: int) -> int:
        while True:
            entries, reached = await self._ledger.recent(after=place, limit=_PAGE)
            await self._queue.put(entries)
            if len(entries) < _PAGE or reached == place:
                return reached
            place = reached


class RelayedQueue:
    """See `carteiro.ports.queue.KeptQueue` for what it promises."""

    def __init__(self, queue: QueueHalf, relay: Relay) -> None:
        self._desk = queue.desk
        self._relay = relay

    async def look(self) -> QueueMemory:
        """How full it is."""
        return await self._desk.look()

    async def complete(self) -> None:
        """Put whatever the ledger has and it has not."""
        await self._relay.put_all()


def _expiry_ms(letter: DeadLetter) -> int:
    return int((letter.moved_at + letter.ttl).timestamp() * 1000)

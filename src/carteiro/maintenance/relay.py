"""Puts every unfinished message back into a queue that lost it: the queue is an index of the ledger.

All messages are put after the queue was wiped, restored, replaced or unreachable, after a crash of the relay, and once
an hour. Recent ones are put every second: the process that accepted one may have crashed before the put. Putting a
known job changes nothing, and a claim detects messages that finished meanwhile.

A relay that ends in order leaves a note in the queue, and its id in the ledger. The next one goes on from there if both
agree: then neither was restored in between.
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
from carteiro.ports.ledger import QUEUE, RELAY, LedgerHalf
from carteiro.ports.queue import QueueHalf

_PAGE = 500
_LEAST_PAUSE_S = 0.05
_LONGEST_LEAVE_S = 1.0
_FULL_EVERY = timedelta(hours=1)
_RENEWALS = 4  # in a term


async def relay(
    ledger: LedgerHalf,
    queue: QueueHalf,
    found: Callable[[], Awaitable[str]],
    *,
    every: timedelta = timedelta(seconds=1),
    term: timedelta = timedelta(seconds=13),
) -> None:
    """Relay until cancelled; ``found`` sends the tenants' shares to the queue and returns its current token.

    ``term``: after a crash of this process, another one relays after this time.
    """
    work, wake = Relay(ledger, queue, found, term=term), ledger.backend.wake
    try:
        while True:
            rings = wake.rings()
            try:
                await work.round()
            except StoreUnavailable:  # logged where it was detected
                await asyncio.sleep(every.total_seconds())
            except Exception as error:  # noqa: BLE001 - the next round may succeed, and a loop must not end unnoticed
                log.upkeep_failed("relay", error)
            await asyncio.sleep(_LEAST_PAUSE_S)  # several notifications may come together
            await wake.wait(every, since=rings)
    finally:
        await work.leave()


class Relay:
    """Relays after an outage of this process, and everything due while it leads.

    See `carteiro.ports.queue.KeptQueue` for its promises.
    """

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
        self._marks = ledger.backend.marks
        self._queue = queue.queue
        self._desk = queue.desk
        self.look = queue.desk.look
        self._found = found
        self._holder = str(uuid7())
        self._term = term
        self._outages = queue.queue.outages
        self._place: int | None = None  # everything up to here was put
        self._full_at = 0.0
        self._renew_at = 0.0

    async def leave(self) -> None:
        """Give up the leadership at once; the next leader goes on from here."""
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_LONGEST_LEAVE_S):
                if self._place is not None and self._queue.outages == self._outages:
                    await self._hand_over(self._place)
                await self._upkeep.lead(RELAY, holder=self._holder, term=ZERO)

    async def _hand_over(self, place: int) -> None:
        if await self._upkeep.lead(RELAY, holder=self._holder, term=self._term):
            await self._marks.put(QUEUE, self._holder)
            full_at = time.time() - (time.monotonic() - self._full_at)
            await self._desk.note(f"{self._holder} {place} {full_at:.0f}")

    async def _take_over(self) -> None:
        """Go on where the last leader ended, if it ended in order, and both queue and ledger are the same since."""
        holder, *places = (await self._desk.note() or "-").split()
        if places and holder == await self._marks.find(QUEUE):
            place, full_at = map(int, places)
            _, settled = await self._ledger.recent(after=None, limit=0)
            if settled < place:  # it would go back there after the first round
                return
            self._place = place
            self._full_at = time.monotonic() - max(0.0, time.time() - full_at)

    async def round(self) -> None:
        """Put all messages that may be missing."""
        is_leader = await self._is_leader()
        if self._queue.outages != self._outages or (is_leader and await self._is_all_due()):
            await self.complete()
        elif is_leader and self._place is not None:
            self._place = await self._put_recent(self._place)
        if not is_leader:
            self._place = None

    async def _is_leader(self) -> bool:
        """Take the lead, or renew it from time to time: a renewal is a commit, and rounds may be many."""
        if time.monotonic() >= self._renew_at:
            is_leader = await self._upkeep.lead(RELAY, holder=self._holder, term=self._term)
            pause = self._term / _RENEWALS if is_leader else ZERO
            self._renew_at = time.monotonic() + pause.total_seconds()
            return is_leader
        return True

    async def _is_all_due(self) -> bool:
        if self._place is None:
            await self._take_over()
        is_old = time.monotonic() - self._full_at > _FULL_EVERY.total_seconds()
        return self._place is None or is_old or not await self._desk.is_complete()

    async def complete(self) -> None:
        """Put every unfinished message, and make the index of dead letters equal to the ledger's."""
        outages = self._queue.outages
        await self._desk.note()  # one that is left is no longer true
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
        """Index all dead letters; remove those of ``shown``, the index before, that are not dead letters any more."""
        kept: set[MessageId] = set()
        cursor: Cursor | None = None
        while True:
            page = await self._letters.find(cursor=cursor, limit=_PAGE, is_whole=False)
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


def _expiry_ms(letter: DeadLetter) -> int:
    return int((letter.moved_at + letter.ttl).timestamp() * 1000)

"""The loop that archives dead letters: read, keep, tell, commit.

Killed anywhere it loses nothing: a commit comes after the acknowledged write, and what is read twice is
known by its place. While MongoDB is down nothing is read, nothing is committed, and the topic is the buffer.
"""

import asyncio
import random
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from carteiro.config import TicketSettings
from carteiro.observability.metrics.definitions import OTHER
from carteiro.policy.retry import RetryPolicy
from carteiro.runtime.ending import ended
from carteiro.tickets import events
from carteiro.tickets.alerts import ALERTMANAGER_UP, SEND_EVERY, Alert, Alerts, bounded, dead_alert
from carteiro.tickets.archive import metrics
from carteiro.tickets.archive.document import WAITING, Archived, Wanted
from carteiro.tickets.archive.mongo import MongoArchive
from carteiro.tickets.archive.reader import DeadLetterLog
from carteiro.tickets.dead_letters.envelope import DeadTicket, done_of, opened
from carteiro.tickets.dead_letters.topic import have_dlq_topic
from carteiro.tickets.deaths import Kind, Trouble
from carteiro.tickets.errors import ArchiveAway
from carteiro.tickets.ticket import Record

# With jitter: archives that lost a database together do not come back together.
_WAITS = RetryPolicy(max_attempts=0, base=timedelta(milliseconds=250), cap=timedelta(seconds=30))
_STEP_S = 0.5  # of waiting, so that a stop is soon heard


class Archiver:
    """Archives what comes on the topic until it is stopped; it belongs to the event loop that it is made in."""

    def __init__(self, settings: TicketSettings, *, look_every: timedelta = SEND_EVERY) -> None:
        self._settings = settings
        self._metrics = metrics.ArchiveMetrics()
        self.page = self._metrics.page
        self._archive = MongoArchive(settings)
        self._alerts = Alerts(
            settings.alertmanager,
            self._look,
            knows_all=True,  # there is one archive, whichever process looks
            on_answer=partial(self._metrics.set, ALERTMANAGER_UP),
            send_every=look_every,
        )
        self._waiting: list[Alert] = []  # as it was last seen
        self._log = DeadLetterLog(settings, on_trouble=self._heard_of_kafka)
        self._stopping = asyncio.Event()
        self._is_prepared = False
        self._waits = 0  # in a row
        self._waits_for = {"Kafka": "", "MongoDB": ""}

    @property
    def waits_for(self) -> str:
        """The servers that it waits for, with their errors; "": none."""
        return "; ".join(filter(None, self._waits_for.values()))

    def stop(self) -> None:
        """End after what is in hand."""
        self._stopping.set()

    async def run(self) -> None:
        """Archive until `stop`; wait for a database or a broker that is down."""
        # The first to come makes the topic: a worker or an archive.
        loops = (self._alerts.run(), have_dlq_topic(self._settings))
        async with AsyncExitStack() as parts:
            parts.callback(events.dlq_consumer_stopped)
            parts.push_async_callback(self._archive.close)
            parts.push_async_callback(ended, *map(asyncio.create_task, loops))
            parts.push_async_callback(self._log.close)
            await self._log.open()
            events.dlq_consumer_started(topic=self._log.topic, group=self._log.group)
            while not self._stopping.is_set():
                await self._turn()

    async def _turn(self) -> None:
        records = await self._log.read()
        self._metrics.set(metrics.ARCHIVE_LAG, len(records) + await self._log.lag())
        try:
            if not self._is_prepared:
                await self._archive.prepare()
                self._is_prepared = True
            if records:
                await self._keep(records)
        except ArchiveAway as error:
            await self._wait(str(error), records)
        else:
            self._go_on()

    async def _keep(self, records: list[Record]) -> None:
        dones = [done for each in records if (done := done_of(each)) is not None]
        dead = [_opened(each) for each in records if done_of(each) is None]
        fresh = await self._archive.keep(dead) if dead else []
        if dones:
            by = f"workers of {self._settings.group}"
            await self._archive.finish(dones, by, now=datetime.now(UTC))
        if fresh or dones:
            self._alerts.news()
        self._metrics.archived += len(fresh)
        await self._log.commit()
        events.dlq_archived(len(dead), new=len(fresh), done=len(dones))

    async def _look(self) -> list[Alert]:
        """Return the alerts of now, and count each state; while the archive cannot be asked, the last ones."""
        try:
            kept = await self._archive.census()
            counts: Counter[Kind] = Counter()
            for each in kept:
                if each.state in WAITING:
                    counts[each.type, each.error_type] += each.count
            self._metrics.holds(kept)
            alerts = [await self._alert(*each) for each in bounded(counts).items()]
            self._waiting = [each for each in alerts if each is not None]
        except ArchiveAway:
            pass  # the loop that archives says so
        return self._waiting

    async def _alert(self, kind: Kind, count: int) -> Alert | None:
        """None: since they were counted, somebody has acted on the last one."""
        type_, error_type = (None, None) if kind == (OTHER, OTHER) else kind
        wanted = Wanted(type=type_, error_type=error_type, states=WAITING)
        page = await self._archive.find(wanted, cursor=None, limit=1)
        return dead_alert(kind, count, _trouble(page.rows[0])) if page.rows else None

    async def _wait(self, why: str, records: list[Record]) -> None:
        """Stay a member of the group, and look again after a while that doubles each time."""
        self._waits += 1
        wait = _WAITS.delay(self._waits, random.random())  # noqa: S311 - not for secrets
        self._waits_for["MongoDB"] = why
        self._metrics.set(metrics.ARCHIVE_UP, 0)
        self._metrics.set(metrics.OLDEST_UNARCHIVED, _age_s(records))
        events.dlq_consumer_waiting(why, records=len(records), wait=wait)
        until = time.monotonic() + wait.total_seconds()
        while not self._stopping.is_set() and (left := until - time.monotonic()) > 0:
            await self._log.rest(min(left, _STEP_S))

    def _go_on(self) -> None:
        self._metrics.set(metrics.ARCHIVE_UP, 1)
        self._metrics.set(metrics.OLDEST_UNARCHIVED, 0)
        if self._waits:
            events.dlq_consumer_going_on("MongoDB")
        self._waits, self._waits_for["MongoDB"] = 0, ""

    def _heard_of_kafka(self, trouble: str | None) -> None:
        if trouble is None:
            events.dlq_consumer_going_on("Kafka")
        else:
            events.dlq_consumer_waiting(f"Kafka: {trouble}")
        self._waits_for["Kafka"] = f"Kafka: {trouble}" if trouble else ""


def _trouble(ticket: Archived) -> Trouble:
    is_whole = ticket.missing is None
    return Trouble(ticket.id, ticket.type, ticket.reason, ticket.error_type, ticket.error, is_whole)


def _opened(record: Record) -> DeadTicket:
    """Parse a dead letter; keep the bytes of one that cannot be parsed, named by its place."""
    try:
        return opened(record)
    except Exception as error:  # noqa: BLE001 - it would be met again at every start, and hold up all others
        events.dlq_not_understood(record, type(error).__name__)
        unnamed = record._replace(key=None, headers=())
        return replace(opened(unnamed._replace(body=None)), raw=record.body, record=unnamed)


def _age_s(records: list[Record]) -> float:
    written = [each.time_ms / 1000 for each in records if each.time_ms]
    return max(0.0, time.time() - min(written)) if written else 0.0

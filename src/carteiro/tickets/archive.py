"""The loop that archives dead letters: read, keep, tell, commit.

Killed anywhere it loses nothing: a commit comes after the acknowledged write, and what is read twice is
known by its place. While MongoDB is away nothing is read, nothing is committed, and the topic is the buffer.
"""

import asyncio
import random
import time
from datetime import UTC, datetime, timedelta

from carteiro.tickets import events
from carteiro.tickets.alerts import Alerts
from carteiro.tickets.dead_letter import opened
from carteiro.tickets.dlq_log import DeadLetterLog
from carteiro.tickets.metrics import TicketMetrics
from carteiro.tickets.mongo_archive import ArchiveAway, MongoArchive
from carteiro.tickets.ticket import Record

FIRST_WAIT_S, LONGEST_WAIT_S = 0.25, 30.0
_JITTER = 0.25  # archives that lost a database together do not come back together
_STEP_S = 0.5  # of waiting, so that a stop is soon heard


class Archivist:
    """Archives what comes on the topic until it is stopped."""

    def __init__(
        self, log: DeadLetterLog, archive: MongoArchive, alerts: Alerts, metrics: TicketMetrics
    ) -> None:
        self._log, self._archive, self._alerts, self._metrics = log, archive, alerts, metrics
        self._stopping = asyncio.Event()
        self._is_prepared = False
        self._waits = 0  # in a row

    async def run(self) -> None:
        """Archive until `stop`; a database or a broker that is away is waited for."""
        events.dlq_consumer_started(self._log.topic, self._log.group, self._archive.address)
        await self._log.open()
        try:
            while not self._stopping.is_set():
                await self._turn()
        finally:
            await self._log.close()
            events.dlq_consumer_stopped()

    def stop(self) -> None:
        """End after what is in hand."""
        self._stopping.set()

    async def _turn(self) -> None:
        records = await self._log.read()
        self._metrics.archive_lag.set(len(records) + await self._log.lag())
        try:
            await self._prepare()
            if records:
                await self._keep(records)
        except ArchiveAway as error:
            await self._wait(error, records)
            return
        self._go_on()

    async def _prepare(self) -> None:
        if not self._is_prepared:
            await self._archive.prepare()
            self._is_prepared = True

    async def _keep(self, records: list[Record]) -> None:
        fresh = await self._archive.keep([opened(each) for each in records], now=datetime.now(UTC))
        for each in fresh:
            self._alerts.tell(each)
            self._metrics.archived.inc()
        await self._log.commit()
        events.dlq_archived(len(records), new=len(fresh))

    async def _wait(self, error: ArchiveAway, records: list[Record]) -> None:
        wait = min(FIRST_WAIT_S * 2**self._waits, LONGEST_WAIT_S) * random.uniform(  # noqa: S311 - not for secrets
            1 - _JITTER, 1 + _JITTER
        )
        self._waits = min(self._waits + 1, 10)
        self._metrics.archive_up.set(0)
        self._metrics.oldest_unarchived.set(_age_s(records))
        events.archive_away(error, records=len(records), wait=timedelta(seconds=wait))
        until = time.monotonic() + wait
        while not self._stopping.is_set() and (left := until - time.monotonic()) > 0:
            await self._log.rest(min(left, _STEP_S))

    def _go_on(self) -> None:
        self._metrics.archive_up.set(1)
        self._metrics.oldest_unarchived.set(0)
        if self._waits:
            self._waits = 0
            events.archive_back(self._archive.address)


def _age_s(records: list[Record]) -> float:
    written = [each.time_ms / 1000 for each in records if each.time_ms]
    return max(0.0, time.time() - min(written)) if written else 0.0

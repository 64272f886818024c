"""The dead letter topic, as the archive reads it: batches in hand until they are committed.

Crash-safe by order alone: what is not committed is read again, by us or by another of the group. All calls
of the client are made in one thread; the decisions of the group arrive there, while nothing else runs.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from carteiro.config import TicketSettings
from carteiro.tickets.kafka_client import SESSION_MS, client_options, records_of
from carteiro.tickets.ticket import Part, Record

Answer = TypeVar("Answer")

MOST_RECORDS = 500
MOST_BYTES = 8 * 1024 * 1024
_POLL_S = 0.25
_ASK_S = 1.0
_OPTIONS = {
    "enable.auto.commit": "false",
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "partition.assignment.strategy": "cooperative-sticky",
    "queued.max.messages.kbytes": "16384",
}
_AWAY = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._RESOLVE})  # noqa: SLF001 - the client's own names for what no broker said


class DeadLetterLog:
    """One reader of the group; ``on_trouble`` is called with what keeps it from reading, None when that is over."""

    def __init__(
        self, settings: TicketSettings, *, on_trouble: Callable[[str | None], None]
    ) -> None:
        self.group = f"{settings.group}-dlq"
        self.topic = settings.dlq_topic
        self._on_trouble = on_trouble
        self._trouble: str | None = None
        self._in_hand: list[Record] = []
        self._uncommitted: dict[Part, int] = {}
        self._is_resting = False
        self._thread = ThreadPoolExecutor(1, "dead-letter-log")
        session = {"session.timeout.ms": str(SESSION_MS)}
        options = session | client_options(settings) | _OPTIONS | {"group.id": self.group}
        heard = {"error_cb": self._hear, "on_commit": self._committed}
        self._consumer = Consumer({**options, **heard})

    async def open(self) -> None:
        """Become a member of the group."""
        await self._call(self._subscribe)

    async def read(self) -> list[Record]:
        """Return the records in hand, or those that come within a moment: perhaps none."""
        if not self._in_hand:
            await self._call(self._take)
        return list(self._in_hand)

    async def rest(self, seconds: float) -> None:
        """Stay a member for this time, without taking more."""
        await self._call(self._stay, seconds)

    async def commit(self) -> None:
        """All that is in hand is archived; where it went to another member meanwhile, that one decides."""
        await self._call(self._commit)

    async def lag(self) -> int:
        """Count the records of our partitions that are not read yet, as far as is known here."""
        return await self._call(self._count_unread)

    async def close(self) -> None:
        """Leave the group; what is in hand will be read by others."""
        await self._call(self._consumer.close)
        self._thread.shutdown()

    # --- in the thread ------------------------------------------------------------------------

    async def _call(self, work: Callable[..., Answer], *arguments: object) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def _subscribe(self) -> None:
        self._consumer.subscribe([self.topic], on_revoke=self._forget, on_lost=self._forget)

    def _take(self) -> None:
        if self._is_resting:
            self._consumer.resume(self._consumer.assignment())
            self._is_resting = False
        if self._trouble is not None:
            self._look_again()
        elif self._uncommitted:
            ends, self._uncommitted = self._uncommitted, {}
            self._send_commit(ends)
        self._take_more()

    def _stay(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        self._is_resting = True
        while (left := until - time.monotonic()) > 0:
            # Each time: what was assigned meanwhile is not paused yet.
            self._consumer.pause(self._consumer.assignment())
            self._take_one(min(left, _POLL_S))  # a record that slipped through is in hand, too

    def _take_more(self) -> None:
        size, patience = 0, _POLL_S
        while len(self._in_hand) < MOST_RECORDS and size < MOST_BYTES:
            record = self._take_one(patience)
            if record is None:
                return
            size, patience = size + len(record.body or b""), 0.0

    def _take_one(self, patience: float) -> Record | None:
        message = self._consumer.poll(patience)
        if message is None:
            return None
        if (error := message.error()) is not None:
            self._tell(error.str())
            return None
        [record] = records_of([message])
        self._in_hand.append(record)
        return record

    def _commit(self) -> None:
        ends = {(each.topic, each.partition): each.offset + 1 for each in self._in_hand}
        self._in_hand.clear()
        self._send_commit(ends)

    def _send_commit(self, ends: Mapping[Part, int]) -> None:
        """Not waited for: without a broker that would take for ever, and nobody would stay a member."""
        if ends:
            offsets = [TopicPartition(*part, end) for part, end in ends.items()]
            self._consumer.commit(offsets=offsets, asynchronous=True)

    def _committed(self, error: KafkaError | None, offsets: list[TopicPartition]) -> None:
        if error is not None:
            # Kept for later. A reader that gets it again before recognises it, so nothing is lost.
            self._uncommitted |= {(each.topic, each.partition): each.offset for each in offsets}
            self._tell(error.str())

    def _count_unread(self) -> int:
        positions = self._consumer.position(self._consumer.assignment())
        return sum(map(self._unread, positions))

    def _unread(self, place: TopicPartition) -> int:
        _, high = self._consumer.get_watermark_offsets(place, cached=True)
        return int(max(0, high - place.offset)) if place.offset >= 0 else 0

    def _forget(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """They are another member's now: what is in hand of them is that one's to archive."""
        gone = {(each.topic, each.partition) for each in partitions}
        self._in_hand = [each for each in self._in_hand if (each.topic, each.partition) not in gone]
        for part in gone:
            self._uncommitted.pop(part, None)

    # --- what keeps it from reading -----------------------------------------------------------

    def _hear(self, error: KafkaError) -> None:
        if error.code() in _AWAY or error.fatal():
            self._tell(error.str())

    def _look_again(self) -> None:
        try:
            found = self._consumer.list_topics(self.topic, timeout=_ASK_S).topics[self.topic]
        except KafkaException:
            return
        self._tell(None if found.error is None else f"{self.topic}: {found.error.str()}")

    def _tell(self, trouble: str | None) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            self._on_trouble(trouble)

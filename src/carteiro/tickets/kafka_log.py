"""The log in Kafka: one thread that does nothing but ask for records, so that its membership never lapses.

What the lane is told, it is told on its event loop, while that thread waits; commits go through a thread
of their own, so that they wait for no record.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from carteiro.tickets.log import Commit, Given, Keeper, Part
from carteiro.tickets.notes import Noted, read_notes
from carteiro.tickets.ticket import Record

_T = TypeVar("_T")

_MOST_AT_ONCE = 500
_POLL_S = 0.1
_ASK_S = 10.0  # how long a question to the broker may take, while partitions change hands
_WAITING = 2  # batches that may be on their way to the event loop
_RETRY_S = 1.0

_OPTIONS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    "partition.assignment.strategy": "cooperative-sticky",
    "queued.max.messages.kbytes": 16384,
    "fetch.wait.max.ms": 100,
    "fetch.error.backoff.ms": 100,
}

Told = Callable[[str], None]


class KafkaLog:
    """The tickets of one topic, as a member of a consumer group.

    ``options`` are those of every client, as librdkafka names them. ``waits`` is told what it waits for,
    and "" when it waits for nothing.
    """

    def __init__(
        self, options: Mapping[str, object], *, topic: str, group: str, waits: Told
    ) -> None:
        self._topic = topic
        self._options = {
            **_OPTIONS,
            **options,
            "group.id": group,
            "error_cb": self._heard_error,
        }
        self._waits = waits
        self._stopping = threading.Event()
        self._commits = ThreadPoolExecutor(1, thread_name_prefix="tickets-commit")
        self._room = threading.Semaphore(_WAITING)
        self._consumer: Consumer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._keeper: Keeper | None = None

    # --- on the event loop ------------------------------------------------------------------------

    async def run(self, keeper: Keeper) -> None:
        """Bring records to the keeper until `stop`; what it says when partitions are revoked is committed."""
        self._keeper, self._loop = keeper, asyncio.get_running_loop()
        self._consumer = Consumer(self._options)
        with ThreadPoolExecutor(1, thread_name_prefix="tickets-poll") as thread:
            await self._loop.run_in_executor(thread, self._poll_until_stopped)
        await self._loop.run_in_executor(None, self._commits.shutdown)

    def stop(self) -> None:
        """Take no more."""
        self._stopping.set()

    def pause(self, parts: Sequence[Part]) -> None:
        """Bring none of these for now."""
        self._steer("pause", parts)

    def resume(self, parts: Sequence[Part]) -> None:
        """Bring them again."""
        self._steer("resume", parts)

    async def commit(self, commits: Sequence[Commit]) -> bool:
        """Store them; whoever is no member any more is refused, and learns the rest by being told so."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._commits, self._commit, commits)
        except (KafkaException, RuntimeError):
            return False
        return True

    # --- in the thread that asks ------------------------------------------------------------------

    def _poll_until_stopped(self) -> None:
        consumer = self._ours
        consumer.subscribe(
            [self._topic],
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._lost,
        )
        try:
            while not self._stopping.is_set():
                self._bring(self._records(consumer))
        finally:
            consumer.close()  # revokes what is left

    def _records(self, consumer: Consumer) -> list[Record]:
        """The first one as soon as it comes, and with it all that have come."""
        first = consumer.poll(_POLL_S)
        if first is None:
            return []
        return [
            record
            for message in (first, *consumer.consume(_MOST_AT_ONCE - 1, 0))
            if (record := self._record(message)) is not None
        ]

    def _record(self, message: Message) -> Record | None:
        error = message.error()
        if error is not None:
            self._heard_error(error)
            if not error.retriable():
                self._stopping.wait(_RETRY_S)  # nothing else slows it down
            return None
        headers = message.headers()
        return Record(
            message.topic(),
            message.partition(),
            message.offset(),
            message.key(),
            message.value(),
            tuple(headers) if headers else (),
            max(0, message.timestamp()[1]),
        )

    def _bring(self, records: list[Record]) -> None:
        if not records:
            return
        self._waits("")
        while not self._room.acquire(timeout=_POLL_S):  # the lane is slow to take what it has
            if self._stopping.is_set():
                return
        bringing = self._tell_later(self._keeper_of_parts.arrived(records))
        bringing.add_done_callback(lambda _: self._room.release())

    def _assigned(self, consumer: Consumer, parts: list[TopicPartition]) -> None:
        self._waits("")
        given = self._with_notes(consumer, parts)
        self._tell(
            self._keeper_of_parts.assigned(
                [Given(_part(each), _noted(each)) for each in given]
            )
        )
        consumer.incremental_assign(
            [TopicPartition(each.topic, each.partition, each.offset) for each in given]
        )

    def _with_notes(
        self, consumer: Consumer, parts: list[TopicPartition]
    ) -> list[TopicPartition]:
        """The same with what was committed of them; without it, if the broker does not say: then more runs again."""
        until = time.monotonic() + _ASK_S
        while not self._stopping.is_set() and time.monotonic() < until:
            with suppress(KafkaException):
                return consumer.committed(parts, timeout=_ASK_S)
            self._stopping.wait(_RETRY_S)
        return parts

    def _revoked(self, consumer: Consumer, parts: list[TopicPartition]) -> None:
        commits = self._tell(self._keeper_of_parts.revoked([_part(each) for each in parts]))
        if commits:
            with suppress(KafkaException):  # then it is read again
                self._commit(commits)
        consumer.incremental_unassign(parts)

    def _lost(self, consumer: Consumer, parts: list[TopicPartition]) -> None:
        self._tell(self._keeper_of_parts.lost([_part(each) for each in parts]))
        with suppress(KafkaException):
            consumer.incremental_unassign(parts)

    # --- between the threads ----------------------------------------------------------------------

    @property
    def _ours(self) -> Consumer:
        assert self._consumer is not None, "it runs"
        return self._consumer

    @property
    def _keeper_of_parts(self) -> Keeper:
        assert self._keeper is not None, "it runs"
        return self._keeper

    def _tell(self, told: Coroutine[Any, Any, _T]) -> _T:
        return self._tell_later(told).result()

    def _tell_later(self, told: Coroutine[Any, Any, _T]) -> "asyncio.Future[_T]":
        assert self._loop is not None, "it runs"
        return asyncio.run_coroutine_threadsafe(told, self._loop)  # type: ignore[return-value]

    def _commit(self, commits: Iterable[Commit]) -> None:
        stored = self._ours.commit(
            offsets=[
                TopicPartition(*each.part, each.offset, metadata=each.notes) for each in commits
            ],
            asynchronous=False,
        )
        for each in stored or ():
            if each.error is not None:
                raise KafkaException(each.error)

    def _steer(self, how: str, parts: Sequence[Part]) -> None:
        with suppress(KafkaException, RuntimeError):  # not ours any more, or closed
            getattr(self._ours, how)([TopicPartition(*part) for part in parts])

    def _heard_error(self, error: KafkaError) -> None:
        self._waits(f"Kafka: {error.str()}")


def _part(each: TopicPartition) -> Part:
    return each.topic, each.partition


def _noted(each: TopicPartition) -> Noted | None:
    """What was noted with the commit, if it is of this commit: whoever moved the offset since wants all run again."""
    noted = read_notes(each.metadata or "")
    return noted if noted is not None and noted.start == each.offset else None

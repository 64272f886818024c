"""Put records into topics, and know that they are there: a call returns when all replicas have its record.

One idempotent producer serves all calls. The library is synchronous: a thread of its own waits for delivery
reports and hands them to the event loop. If we are killed before the report, the record may be there or not;
the caller asks again after the restart, and a second dead letter of the same record has the same ``dlq_id``.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer

from carteiro.config import TicketSettings
from carteiro.tickets import events
from carteiro.tickets.dead_letters.envelope import LIMIT, Envelope, done_envelope, forms, size
from carteiro.tickets.deaths import Death
from carteiro.tickets.errors import PublishFailed
from carteiro.tickets.kafka_client import client_options, refusal
from carteiro.tickets.scrubbing import scrubbed_start
from carteiro.tickets.ticket import Ticket, Unreadable

_T = TypeVar("_T")

TIMED_OUT, TOO_LARGE = "TimeoutError", "MSG_SIZE_TOO_LARGE"  # types of errors

_LARGEST = 16 * 1024 * 1024  # bytes, before they are compressed; what is larger is not even tried
_SENT_AT_ONCE, _SENT_AT_ONCE_BYTES = 1000, 8 * 1024 * 1024
_LONGEST_SAID = 4096  # bytes of an error
_BOUND_S = 12.0  # the library reports before, unless it is broken
_LAST_WORDS_S = 5.0
_LOOKING_S = 2.0
_POLL_S = 0.5
_OPTIONS: dict[str, str | int | bool] = {
    "acks": "all",
    "enable.idempotence": True,
    "message.max.bytes": _LARGEST,
    "batch.size": 65536,  # a batch of many is never refused for its size: only a large record is alone in one
    "message.timeout.ms": 8000,
    "request.timeout.ms": 4000,
    "socket.timeout.ms": 4000,
    "topic.metadata.propagation.max.ms": 4000,  # then a topic that is not there is said to be missing
}
_CHANGEABLE: dict[str, str | int | bool] = {
    "compression.type": "snappy",
    "linger.ms": 5,
    "partitioner": "murmur2_random",  # as producers in Java have it, so that a key has one partition for all
}

_TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})
_TIMED_OUT = frozenset(
    {KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT}  # noqa: SLF001 - so they are named
)
_MISSING = frozenset({"_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART"})


class Publisher:
    """Writes dead letters and what is redriven. It belongs to the event loop that it is used in."""

    def __init__(self, settings: TicketSettings) -> None:
        self._topic, self._group = settings.dlq_topic, settings.group
        options = _CHANGEABLE | client_options(settings) | _OPTIONS
        try:
            self._producing = _Producing(options)
        except KafkaException as error:
            raise refusal(settings, error) from None

    async def publish(self, deaths: Sequence[Death]) -> list[bool | Exception]:
        """Put dead letters into their topic, each in the fullest form that it takes, with one wait for all.

        For each whether that has all of its ticket, or why it failed.
        """
        results: list[bool | Exception] = []
        for some in _portions(deaths, lambda each: len(each.ticket.record.body or b"")):
            tries = [_Try(each, self._group) for each in some]
            await self._try_all(tries)
            results += [self._told(each) for each in tries]
        return results

    async def _try_all(self, tries: Sequence["_Try"]) -> None:
        while waiting := [each for each in tries if each.prepare()]:
            envelopes = [each.made for each in waiting if each.made is not None]
            results = await self._results(self._topic, envelopes)
            for each, failed in zip(waiting, results, strict=True):
                each.tried(failed, self._topic)
        await self._look_if_missing(self._topic, [each.result for each in tries])

    def _told(self, tried: "_Try") -> bool | Exception:
        """The result of one, said in the log, too."""
        result, topic = tried.result, self._topic
        if isinstance(result, Envelope):
            is_whole, bytes_ = result.is_whole, size(result)
            events.dlq_published(tried.death, topic=topic, size_bytes=bytes_, is_whole=is_whole)
            return is_whole
        if isinstance(result, PublishFailed):
            type_ = result.error_type
            events.dlq_publish_failed(tried.death, str(result), topic=topic, error_type=type_)
        return result

    async def publish_done(self, ticket: Ticket | Unreadable, *, redrives: int) -> None:
        """Tell the archive that a ticket which it had is done."""
        [failed] = await self._results(self._topic, [done_envelope(ticket, redrives=redrives)])
        if failed is not None:
            raise failed

    async def send(self, topic: str, envelopes: Sequence[Envelope]) -> list[PublishFailed | None]:
        """Put each into a topic as it is; for each why it failed, if it did."""
        results: list[PublishFailed | None] = []
        for some in _portions(envelopes, size):
            results += await self._results(topic, some)
        await self._look_if_missing(topic, results)
        return results

    async def close(self) -> None:
        """Wait a little for what is in flight, and part."""
        await asyncio.to_thread(self._producing.close)

    async def _look_if_missing(self, topic: str, results: Iterable[object]) -> None:
        """The library would look for a topic that it once missed only minutes later."""
        if any(isinstance(each, PublishFailed) and each.error_type in _MISSING for each in results):
            await asyncio.to_thread(self._producing.look_for, topic)

    async def _results(
        self, topic: str, envelopes: Sequence[Envelope]
    ) -> list[PublishFailed | None]:
        """Write them, and wait once, for the last report: why each is not known to be there, or None: it is."""
        reports = _Reports(len(envelopes))
        for at, each in enumerate(envelopes):
            try:
                self._producing.write(topic, each, partial(reports.tell, at))
            except PublishFailed as failed:
                reports.tell(at, failed)
        with suppress(TimeoutError):
            async with asyncio.timeout(_BOUND_S):
                await reports.are_complete
        return [*reports.results]


class _Try:
    """A dead letter on its way, from the fullest form down to the one that is taken; compressed, a large one may fit.

    ``result`` is what is there, or why nothing is.
    """

    def __init__(self, death: Death, group: str) -> None:
        self.death = death
        self.made: Envelope | None = None
        self.result: Envelope | Exception = _failed(TOO_LARGE, "it is too large in every form")
        self._limit = _LARGEST
        self._forms = forms(death, published_at_ms=time.time_ns() // 1_000_000, group=group)

    def prepare(self) -> bool:
        """Make the next form that may fit; False: there is nothing to try."""
        if not _is_too_large(self.result):
            return False
        try:
            self.made = next((each for each in self._forms if size(each) <= self._limit), None)
        except Exception as error:  # noqa: BLE001 - a bug of ours must not keep others from being published
            self.made, self.result = None, error
        return self.made is not None

    def tried(self, failed: PublishFailed | None, topic: str) -> None:
        """Hear what became of it."""
        if self.made is None:
            return
        self.result = failed or self.made
        if failed is not None and _is_too_large(failed):
            size_bytes = size(self.made)
            events.dlq_publish_refused(self.death, topic=topic, size_bytes=size_bytes)
            self._limit = min(LIMIT, size_bytes - 1)


class _Reports:
    """Reports of the delivery of several records; those that do not come stay as failed."""

    def __init__(self, many: int) -> None:
        missing = _failed(TIMED_OUT, "no report of the delivery in time")
        self.results: list[PublishFailed | None] = [missing] * many
        self._loop = asyncio.get_running_loop()
        self.are_complete: asyncio.Future[None] = self._loop.create_future()
        self._left = set(range(many))

    def tell(self, at: int, result: PublishFailed | None) -> None:
        """Take one, in whichever thread it comes."""
        if self.are_complete.done():
            return  # nobody waits any more
        self.results[at] = result
        self._left.discard(at)
        if not self._left:
            self._loop.call_soon_threadsafe(self._complete)

    def _complete(self) -> None:
        if not self.are_complete.done():
            self.are_complete.set_result(None)


class _Producing:
    """A producer, and the thread that hears its reports; after an error for good there is a new one."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options | {"error_cb": self._complained}
        self._complaints: set[str] = set()  # since the last success, so that each is said once
        self._is_spent = self._is_closing = False
        self._producer = Producer(self._options)
        self._thread = Thread(target=self._hear, name="kafka delivery reports", daemon=True)
        self._thread.start()

    def write(
        self, topic: str, made: Envelope, tell: Callable[[PublishFailed | None], None]
    ) -> None:
        """Begin to write; ``tell`` is called by the other thread. `PublishFailed` if it cannot even begin."""
        if self._is_closing:
            raise _failed("Closed", "the publisher is closed")
        try:
            self._producer.produce(
                topic,
                made.value,
                made.key,
                headers=list(made.headers),
                on_delivery=lambda error, _: tell(self._reported(error)),
            )
        except BufferError:
            raise _failed("QueueFull", "too many records wait for the brokers") from None
        except KafkaException as error:
            raise self._failure(error.args[0]) from None

    def look_for(self, topic: str) -> None:
        """See whether it is there by now, so that the next one who writes to it knows."""
        with suppress(KafkaException):
            self._producer.list_topics(topic, timeout=_LOOKING_S)

    def close(self) -> None:
        """Wait a little for what is in flight; what is not there by then has failed."""
        self._is_closing = True
        self._producer.flush(_LAST_WORDS_S)
        self._thread.join()
        self._part_from(self._producer)

    def _hear(self) -> None:
        while not self._is_closing:
            self._producer.poll(_POLL_S)
            if self._is_spent:
                spent, self._producer = self._producer, Producer(self._options)
                self._is_spent = False
                self._part_from(spent)

    def _part_from(self, producer: Producer) -> None:
        """Have what is in flight reported as failed."""
        producer.purge()
        producer.flush(_LAST_WORDS_S)

    def _reported(self, error: KafkaError | None) -> PublishFailed | None:
        if error is not None:
            return self._failure(error)
        self._complaints.clear()
        return None

    def _failure(self, error: KafkaError) -> PublishFailed:
        self._is_spent = self._is_spent or error.fatal()
        return _failed(_type(error), error.str())

    def _complained(self, error: KafkaError) -> None:
        self._is_spent = self._is_spent or error.fatal()
        if error.name() not in self._complaints:
            self._complaints.add(error.name())
            events.kafka_trouble(_type(error), error.str())


def _type(error: KafkaError) -> str:
    """The name that metrics and alerts know it by."""
    if error.code() in _TOO_LARGE:
        return TOO_LARGE
    return TIMED_OUT if error.code() in _TIMED_OUT else error.name()


def _failed(type: str, text: str) -> PublishFailed:
    return PublishFailed(scrubbed_start(text, _LONGEST_SAID), error_type=type)


def _is_too_large(result: object) -> bool:
    return isinstance(result, PublishFailed) and result.error_type == TOO_LARGE


def _portions(items: Iterable[_T], size_of: Callable[[_T], int]) -> Iterator[list[_T]]:
    """Split them, so that they do not fill the memory."""
    some: list[_T] = []
    size_bytes = 0
    for each in items:
        some.append(each)
        size_bytes += size_of(each)
        if len(some) >= _SENT_AT_ONCE or size_bytes >= _SENT_AT_ONCE_BYTES:
            yield some
            some, size_bytes = [], 0
    if some:
        yield some

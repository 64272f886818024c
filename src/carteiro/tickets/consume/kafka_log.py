"""The log in Kafka: one thread that does nothing but ask for records, so that its membership never lapses.

The keeper is called on its event loop, while that thread waits. What the lane asks for is done
by that thread between two questions: the client lets nobody else in while it waits for records.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from carteiro.tickets import events
from carteiro.tickets.consume.notes import Noted, read_notes
from carteiro.tickets.consume.ports import Commit, Given, Keeper
from carteiro.tickets.kafka_client import SESSION_MS, records_of
from carteiro.tickets.ticket import Part, Record

_T = TypeVar("_T")

_MOST_AT_ONCE = 1000
_POLL_S = 0.02  # how long an errand may have to wait
# The same after records have come, for as many questions: a commit of them is asked for soon.
_SOON_S, _SOON = 0.004, 5
_LOOK_S = 1.0
_ASK_S = 10.0  # how long a question to the broker may take, while partitions change hands
_RETRY_S = 1.0
_KNOCK_S = 0.5  # for a broker that was down to answer
_PARTING_S = 10.0  # how long it is waited for a broker that hangs, when it is to stop
_TICK_S = 0.1
# The longest that a member asks for nothing: it hears of changes in its group only when it asks.
_DRY_S = 1.0

_OPTIONS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    "partition.assignment.strategy": "cooperative-sticky",
    "queued.max.messages.kbytes": 16384,
    "fetch.wait.max.ms": 100,
    "session.timeout.ms": SESSION_MS,
    "fetch.error.backoff.ms": 100,
}

Told = Callable[[str], None]


class KafkaLog:
    """The tickets of one topic, as a member of a consumer group.

    ``options`` are those of every client, as librdkafka names them. ``waits`` is called with what it waits for,
    and "" when it waits for nothing.
    """

    def __init__(
        self, options: Mapping[str, object], *, topic: str, group: str, waits: Told
    ) -> None:
        self._topic = topic
        self._waits = _Waiting(waits)
        own = {"group.id": group, "error_cb": self._heard_error}
        self._consumer = Consumer({**_OPTIONS, **options, **own})
        self._stopping = threading.Event()
        self._errands: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._taps = _Taps(self._consumer)
        self._ends: dict[Part, int] = {}
        self._keeper: Keeper
        self._loop: asyncio.AbstractEventLoop
        self._parts: set[Part] = set()  # that the keeper has
        self._telling: Future[Any] | None = None
        self._taking_in: Future[None] | None = None
        self._is_abandoned = False
        self._look_at = 0.0
        self._in_vain = 0  # questions since the last record
        self._alone_s = 0.0  # for how long it has waited for a broker since it was to stop

    async def run(self, keeper: Keeper) -> None:
        """Bring records to the keeper until `stop`; what it says when partitions are revoked is committed."""
        self._keeper, self._loop = keeper, asyncio.get_running_loop()
        polling = _in_a_thread(self._poll_until_stopped)
        try:
            await self._until_over(polling)
        finally:  # who is cancelled lets go all the same: the thread needs this loop until its end
            self._stopping.set()
            await self._until_over(polling)
        if polling.done():
            polling.result()
        else:
            events.kafka_hangs(_PARTING_S)
            # It is left to itself: the keeper lets go, and what was to be committed is read again.
            self._is_abandoned = True
            await self._keeper.revoked([*self._parts])

    async def _until_over(self, polling: "asyncio.Future[None]") -> None:
        """Until the thread has ended, or has waited too long for a broker that hangs when it is to stop."""
        while not polling.done() and self._alone_s < _PARTING_S:
            await asyncio.wait([polling], timeout=_TICK_S)
            is_telling = self._telling is not None and not self._telling.done()
            is_alone = self._stopping.is_set() and not is_telling  # it waits for a broker
            self._alone_s = self._alone_s + _TICK_S if is_alone else 0.0

    def stop(self) -> None:
        """Take no more."""
        self._stopping.set()

    def pause(self, parts: Sequence[Part]) -> None:
        """Bring none of these for now."""
        self._errands.put(partial(self._taps.close, parts))

    def resume(self, parts: Sequence[Part]) -> None:
        """Bring them again."""
        self._errands.put(partial(self._taps.open, parts))

    def ends(self, parts: Sequence[Part]) -> Mapping[Part, int]:
        """Where partitions end, as the last answer of their broker had it."""
        return {part: self._ends[part] for part in parts if part in self._ends}

    async def commit(self, commits: Sequence[Commit]) -> bool:
        """Store them; a process that has left the group is refused, and learns the rest from `Keeper.lost`."""
        stored: Future[bool] = Future()
        self._errands.put(partial(self._store, commits, stored))
        return await asyncio.wrap_future(stored)

    def _store(self, commits: Sequence[Commit], stored: "Future[bool]") -> None:
        if not stored.set_running_or_notify_cancel():
            return  # the caller has stopped waiting
        try:
            # A broker takes them from any member.
            is_stored = not self._waits.is_away and _are_ours(self._consumer, commits)
            if is_stored:
                _commit(self._consumer, commits)
        except (KafkaException, RuntimeError):  # refused, away, or closed
            is_stored = False
        stored.set_result(is_stored)

    def _heard_error(self, error: KafkaError) -> None:
        is_last = error.code() == KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - so it is named
        self._waits(f"Kafka: {error.str()}", away=is_last)

    # --- in the thread that asks for records ---

    def _poll_until_stopped(self) -> None:
        """Ask for records, and do errands, until it is to stop; then leave the group in good order."""
        self._consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )
        try:
            while not self._stopping.is_set():
                if self._taps.is_dry(self._parts):
                    self._bring([])
                    with suppress(Empty):
                        self._errands.get(timeout=_POLL_S)()
                else:
                    self._bring(self._records())
                self._run_errands()
                self._look_around()
            self._part()
        finally:
            self._consumer.close()  # revokes what is left
            self._run_errands()  # a caller that waits for one learns that it is too late

    def _run_errands(self) -> None:
        while not self._errands.empty():
            self._errands.get()()

    def _part(self) -> None:
        """Have the keeper let go of all, still a member: one that is being closed is soon taken for dead."""
        parts = [*self._parts]
        if not parts:
            return
        _steer(self._consumer.pause, parts)
        told = self._begin_to_tell(self._keeper.revoked(parts))
        while not told.done():
            self._consumer.poll(_POLL_S)  # what was on its way is read again by somebody
            self._bring([])
            self._run_errands()
        self._parts.clear()
        self._commit_last(told.result())

    def _look_around(self) -> None:
        if (now := time.monotonic()) >= self._look_at:
            self._look_at = now + _LOOK_S
            with suppress(KafkaException, RuntimeError):
                for each in self._consumer.assignment():
                    _, end = self._consumer.get_watermark_offsets(each, cached=True)
                    if end >= 0:
                        self._ends[_part(each)] = end
            if self._waits.is_on:
                self._knock()

    def _knock(self) -> None:
        """Ask for the topic: a broker that answers, and has it, is not waited for any more."""
        with suppress(KafkaException):
            found = self._consumer.list_topics(self._topic, timeout=_KNOCK_S).topics
            if self._topic in found and found[self._topic].error is None:
                self._waits("")

    def _records(self) -> list[Record]:
        """The first one as soon as it comes, and with it all that have come."""
        first = self._consumer.poll(_SOON_S if self._in_vain < _SOON else _POLL_S)
        if first is None:
            self._in_vain += 1
            return []
        self._in_vain = 0
        messages = [first, *self._consumer.consume(_MOST_AT_ONCE - 1, 0)]
        errors = [error for error in map(Message.error, messages) if error is not None]
        for each in errors:
            self._waits(f"Kafka: {each.str()}")
            self._stopping.wait(_RETRY_S)  # nothing else slows it down
        good = [each for each in messages if each.error() is None] if errors else messages
        return records_of(good) if good else []

    def _bring(self, records: list[Record]) -> None:
        """Hand them over, after the last ones were taken in; meanwhile the next ones are asked for."""
        if self._taking_in is not None and (records or self._taking_in.done()):
            self._taking_in.result()  # it takes no time, or raises what must not be passed over
            self._taking_in = None
        if records:
            self._waits("")
            told = self._keeper.arrived(records)
            self._taking_in = asyncio.run_coroutine_threadsafe(told, self._loop)

    def _assigned(self, _: Consumer, parts: list[TopicPartition]) -> None:
        self._waits("")
        given = self._with_notes(parts)
        self._parts |= {_part(each) for each in parts}
        self._taps.forget(_part(each) for each in parts)
        self._tell(
            self._keeper.assigned(
                [Given(_part(each), _noted(each), _committed(each)) for each in given]
            )
        )
        from_there = [TopicPartition(each.topic, each.partition, each.offset) for each in given]
        self._consumer.incremental_assign(from_there)
        # The client remembers a pause, though they were others' meanwhile.
        self._consumer.resume(from_there)

    def _with_notes(self, parts: list[TopicPartition]) -> list[TopicPartition]:
        """The same with what was committed of them; without it, if the broker does not say: then more runs again."""
        until = time.monotonic() + _ASK_S
        while not self._stopping.is_set() and time.monotonic() < until:
            with suppress(KafkaException):
                return self._consumer.committed(parts, timeout=_ASK_S)
            self._stopping.wait(_RETRY_S)
        return parts

    def _revoked(self, _: Consumer, parts: list[TopicPartition]) -> None:
        self._taps.forget(_part(each) for each in parts)
        ours = [part for each in parts if (part := _part(each)) in self._parts]
        if ours:
            commits = self._tell(self._keeper.revoked(ours))
            self._parts -= set(ours)
            self._commit_last(commits)
        self._consumer.incremental_unassign(parts)

    def _commit_last(self, commits: Sequence[Commit]) -> None:
        self._run_errands()  # commits that were asked for before must not come after the last ones
        if commits and not self._waits.is_away:
            with suppress(KafkaException):  # then it is read again
                _commit(self._consumer, commits)

    def _lost(self, _: Consumer, parts: list[TopicPartition]) -> None:
        self._taps.forget(_part(each) for each in parts)
        self._tell(self._keeper.lost([_part(each) for each in parts]))
        self._parts -= {_part(each) for each in parts}
        with suppress(KafkaException):
            self._consumer.incremental_unassign(parts)

    def _tell(self, told: Coroutine[Any, Any, _T]) -> _T:
        return self._begin_to_tell(told).result()

    def _begin_to_tell(self, told: Coroutine[Any, Any, _T]) -> "Future[_T]":
        if self._is_abandoned:
            told.close()
            raise RuntimeError("nobody listens any more")
        self._telling = telling = asyncio.run_coroutine_threadsafe(told, self._loop)
        return telling


class _Waiting:
    """Remembers whether anything is waited for, since nobody says that a broker is back.

    ``is_away``: no broker is there. A commit would wait for one as long as a session lasts, and the
    thread with it, also when it is to stop.
    """

    def __init__(self, told: Told) -> None:
        self._told = told
        self.is_on = self.is_away = False

    def __call__(self, what: str, *, away: bool = False) -> None:
        self.is_on = bool(what)
        self.is_away = self.is_on and (away or self.is_away)
        self._told(what)


class _Taps:
    """Which partitions bring nothing for now.

    The client needs half a second until it brings more of a partition that was paused. So it is
    paused only where that is worth it: while others go on, or when it lasts.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._closed: dict[Part, float] = {}  # since when
        self._told: set[Part] = set()

    def close(self, parts: Sequence[Part]) -> None:
        """Nothing of these."""
        for part in parts:
            self._closed.setdefault(part, time.monotonic())

    def open(self, parts: Sequence[Part]) -> None:
        """These again."""
        told = [part for part in parts if part in self._told]
        self.forget(parts)
        if told:
            _steer(self._consumer.resume, told)

    def forget(self, parts: Iterable[Part]) -> None:
        """They are another's, or new here."""
        for part in parts:
            self._closed.pop(part, None)
            self._told.discard(part)

    def is_dry(self, ours: Collection[Part]) -> bool:
        """Return True if all are closed, and not for long; otherwise pause those that are closed in the client."""
        if not self._closed:
            return False
        first = min(self._closed.values())
        if all(part in self._closed for part in ours) and time.monotonic() < first + _DRY_S:
            return True
        news = self._closed.keys() - self._told
        if news:
            _steer(self._consumer.pause, [*news])
            self._told |= news
        return False


def _in_a_thread(work: Callable[[], None]) -> "asyncio.Future[None]":
    """Do it in a thread that may hang: for those of an executor the interpreter waits at its end."""
    ended: Future[None] = Future()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the waiting task raises it
            ended.set_exception(error)
        else:
            ended.set_result(None)

    threading.Thread(target=run, name="tickets", daemon=True).start()
    return asyncio.wrap_future(ended)


def _are_ours(consumer: Consumer, commits: Iterable[Commit]) -> bool:
    ours = {_part(each) for each in consumer.assignment()}
    return all(each.part in ours for each in commits)


def _commit(consumer: Consumer, commits: Iterable[Commit]) -> None:
    offsets = [TopicPartition(*each.part, each.offset, metadata=each.notes) for each in commits]
    for each in consumer.commit(offsets=offsets, asynchronous=False) or ():
        if each.error is not None:
            raise KafkaException(each.error)


def _steer(how: Callable[[list[TopicPartition]], None], parts: Sequence[Part]) -> None:
    with suppress(KafkaException, RuntimeError):  # not ours any more, or closed
        how([TopicPartition(*part) for part in parts])


def _part(each: TopicPartition) -> Part:
    return each.topic, each.partition


def _committed(each: TopicPartition) -> int | None:
    return each.offset if each.offset >= 0 else None


def _noted(each: TopicPartition) -> Noted | None:
    """Return the notes of this commit; None if the offset was moved since: then all is to run again."""
    noted = read_notes(each.metadata or "")
    return noted if noted is not None and noted.start == each.offset else None

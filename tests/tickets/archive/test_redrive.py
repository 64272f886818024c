"""Dead tickets are redriven: once, with fresh attempts, wherever the run is stopped."""

import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import orjson
import pytest
import redis
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from carteiro.config import TicketSettings
from carteiro.errors import CarteiroError
from carteiro.tickets.archive.document import Archived, Wanted
from carteiro.tickets.archive.fetching import fetched
from carteiro.tickets.archive.mongo import MongoArchive
from carteiro.tickets.archive.redrive import (
    MOST_FAILED,
    MOST_REDRIVES,
    STALE_AFTER,
    Answer,
    Redrive,
    Redriven,
    RedriveTerms,
    judge,
)
from carteiro.tickets.consume.counter import RetryCounter
from carteiro.tickets.dead_letters.envelope import DeadTicket, Envelope, opened
from carteiro.tickets.dead_letters.publisher import Publisher
from carteiro.tickets.errors import CountsAway, KafkaAway
from support.archiving import clock_at, tickets_settings
from support.dead_tickets import a_dead_ticket, a_deep_ticket, a_ticket, an_oversized_ticket
from support.kafka_server import Broker
from support.mongo_server import MongoServer
from support.redis_server import RedisServer
from support.services import HOST, free_port

pytestmark = pytest.mark.servers

NOW = datetime(2026, 10, 1, 12, tzinfo=UTC)
TERMS = RedriveTerms(by="ana", why="the host is back")
RESTING = Wanted(states=("dead", "redriving"))


class Kit:
    """An archive, a topic, a Redis, and what a run needs of them."""

    def __init__(
        self, archive: MongoArchive, settings: TicketSettings, publisher: Publisher
    ) -> None:
        self.archive, self.settings, self.publisher = archive, settings, publisher
        self.counter = RetryCounter(settings.redis)
        self.slept: list[float] = []
        self.now = NOW

    def redrive(self, *, terms: RedriveTerms = TERMS, **instead: Any) -> Redrive:
        """A run, with parts of it replaced."""
        return Redrive(
            self.archive,
            instead.get("counts", self.counter),
            instead.get("producer", self.publisher),
            fetch=partial(fetched, self.settings),
            topic=instead.get("topic", self.settings.topic),
            terms=terms,
            now=lambda: self.now,
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def keep(self, *dead: DeadTicket) -> None:
        """Archive these."""
        await self.archive.keep(dead, now=clock_at(NOW - timedelta(hours=1)))

    async def ran(self, wanted: Wanted = RESTING, **how: Any) -> dict[str, Answer]:
        """Send what matches; what became of each."""
        limit, rate = how.pop("limit", 0), how.pop("rate", None)
        return await _answers(self.redrive(**how).run(wanted, limit=limit, rate=rate))

    async def ticket(self, id: str = "T-1") -> Archived:
        """Return the ticket as the archive has it."""
        found = await self.archive.show(id)
        assert found is not None
        return found

    def produced(self) -> list[Message]:
        """All that is on the topic of tickets."""
        return _read(self.settings)


async def _answers(run: AsyncIterator[list[Redriven]]) -> dict[str, Answer]:
    return {each.ticket.id: each.answer async for page in run for each in page}


def _read(settings: TicketSettings) -> list[Message]:
    options = {
        "bootstrap.servers": settings.bootstrap_servers,
        "group.id": "reader",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = Consumer(options)
    found = []
    try:
        consumer.subscribe([settings.topic])
        while (message := consumer.poll(30)) is not None and message.error() is None:
            found.append(message)
    finally:
        consumer.close()
    return found


@pytest.fixture
async def kit(
    archive: MongoArchive,
    topics: dict[str, str],
    redis_server: RedisServer,
    mongo: MongoServer,
    database: str,
) -> AsyncIterator[Kit]:
    """With a topic and a database of its own."""
    settings = tickets_settings(
        **topics, REDIS=redis_server.url, MONGO=mongo.url, MONGO_DATABASE=database
    )
    publisher = Publisher(settings)
    made = Kit(archive, settings, publisher)
    yield made
    await publisher.close()
    await made.counter.close()


@pytest.fixture
def keys(redis_server: RedisServer) -> Iterator[redis.Redis]:
    """The counts that the counter of failures keeps."""
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as client:
        yield client


class _Producer:
    """Sends, and has something happen before or after it."""

    def __init__(
        self,
        publisher: Publisher,
        *,
        before: Callable[[], object] = lambda: None,
        after: Callable[[], Any] | None = None,
    ) -> None:
        self._publisher, self._before, self._after = publisher, before, after

    async def send(
        self, topic: str, envelopes: Sequence[Envelope]
    ) -> Sequence[CarteiroError | None]:
        self._before()
        sent = await self._publisher.send(topic, envelopes)
        if self._after is not None:
            await self._after()
        return sent


class _Killed(BaseException):
    """As if the process were gone: nobody tidies up."""


async def _die() -> None:
    raise _Killed


# --- what is sent -----------------------------------------------------------------------------


async def test_a_ticket_goes_back_as_it_came_but_pending(kit: Kit) -> None:
    """Without what was said of its death, by its own key, with what came with it."""
    await kit.keep(a_dead_ticket(a_ticket("T-1", nested={"a": [1, 2.5]})))

    assert await kit.ran() == {"T-1": "redriven"}

    [message] = kit.produced()
    assert message.key() == b"T-1"
    assert orjson.loads(message.value() or b"") == a_ticket(
        "T-1", nested={"a": [1, 2.5]}, status="PENDING"
    )
    assert message.headers() == [("trace", b"abc"), ("carteiro_redrives", b"1")]


async def test_a_header_without_a_value_has_none_afterwards(kit: Kit) -> None:
    """Nor does it become an empty one on the way."""
    dead = a_dead_ticket()
    headers = (*dead.record.headers, ("null", None), ("empty", b""))
    await kit.keep(opened(dead.record._replace(headers=headers)))

    await kit.ran()

    [message] = kit.produced()
    expected = [("trace", b"abc"), ("null", None), ("empty", b""), ("carteiro_redrives", b"1")]
    assert message.headers() == expected


async def test_redrive_is_in_the_history_with_author_time_and_reason(kit: Kit) -> None:
    """For a reader of the history."""
    await kit.keep(a_dead_ticket())

    run = kit.redrive()
    await _answers(run.run(RESTING))

    found = await kit.ticket()
    assert (found.state, found.redrives) == ("redriven", 1)
    expected = {"by": "ana", "why": "the host is back", "at": NOW, "run": run.id}
    assert list(found.history) == [
        {"what": "republishing"} | expected,
        {"what": "republished"} | expected,
    ]


async def test_its_count_is_gone_before_it_is_on_its_way(kit: Kit, keys: redis.Redis) -> None:
    """With the old one it would go straight back to the dead."""
    names = ["ticket:retry_count:T-1", "ticket:dlq_done:T-1"]
    keys.mset(dict.fromkeys(names, "3"))
    await kit.keep(a_dead_ticket())
    there: list[object] = []
    producer = _Producer(kit.publisher, before=lambda: there.append(keys.exists(*names)))

    await kit.ran(producer=producer)

    assert there == [0]


async def test_republished_ticket_is_not_sent_twice(kit: Kit) -> None:
    """Until it dies again."""
    await kit.keep(a_dead_ticket())
    first = await kit.ran()
    second = await kit.ran()
    by_id = await kit.ran(Wanted(ids=("T-1",)))
    await kit.keep(a_dead_ticket(at=5, redrives=1))

    third = await kit.ran()

    assert (first, second, by_id) == ({"T-1": "redriven"}, {}, {"T-1": "already"})
    assert third == {"T-1": "redriven"}
    assert [dict(each.headers() or [])["carteiro_redrives"] for each in kit.produced()] == [
        b"1",
        b"2",
    ]


async def test_ticket_that_dies_again_before_it_is_marked_stays_dead(kit: Kit) -> None:
    """A worker may be faster than we are."""
    await kit.keep(a_dead_ticket())

    async def dies() -> None:
        await kit.keep(a_dead_ticket(at=9, redrives=1))

    await kit.ran(producer=_Producer(kit.publisher, after=dies))

    found = await kit.ticket()
    assert (found.state, found.deaths) == ("dead", 2)


async def test_redrive_respects_limit_and_rate(kit: Kit) -> None:
    """A ticket that cannot be sent does not use up the limit."""
    await kit.keep(
        *(a_dead_ticket(a_ticket(f"T-{each}"), at=each) for each in range(7)),
        a_dead_ticket(b"no ticket", at=9),
    )

    answers = await kit.ran(limit=5, rate=2.0)

    assert sorted(answers.values()) == [*["redriven"] * 5, "undecodable"]
    assert len(kit.produced()) == 5
    assert kit.slept == [0.5, 1.0]  # one was sent, then two; after the last two nobody waits


async def test_to_look_changes_nothing(kit: Kit) -> None:
    """It says what would become of each."""
    await kit.keep(
        a_dead_ticket(),
        a_dead_ticket(b"?", at=1),
        a_dead_ticket(a_ticket("T-2"), at=2, redrives=MOST_REDRIVES),
    )

    foreseen = await _answers(kit.redrive().look(RESTING))

    assert foreseen == {
        "T-1": "redriven",
        "poison:execution.tickets:0:1": "undecodable",
        "T-2": "too_often",
    }
    assert kit.produced() == []
    assert {(await kit.ticket(id)).state for id in foreseen} == {"dead"}
    assert (await kit.ticket()).history == ()


# --- what was too large -----------------------------------------------------------------------


def _oversized(kit: Kit, body: bytes, *, said: bytes | None = None, at: int = 0) -> DeadTicket:
    """A ticket on its topic, and its dead letter, which has only its place; ``said``: of other bytes."""
    producer = Producer({"bootstrap.servers": kit.settings.bootstrap_servers})
    producer.produce(kit.settings.topic, body, headers=[("trace", b"xyz")])
    assert producer.flush(30) == 0
    return an_oversized_ticket(said or body, topic=kit.settings.topic, at=at)


@pytest.mark.parametrize("body", [orjson.dumps(a_ticket(n=[1])), b'{"ticket_id": "T-1"}'])
async def test_oversized_ticket_is_read_again_from_its_topic(kit: Kit, body: bytes) -> None:
    """With its headers, and byte by byte if it is not a ticket."""
    await kit.keep(_oversized(kit, body))

    foreseen = await _answers(kit.redrive(terms=replace(TERMS, is_raw=True)).look(RESTING))
    sent = await kit.ran(terms=replace(TERMS, is_raw=True))

    assert foreseen == sent == {"T-1": "redriven"}
    [_, message] = kit.produced()
    expected = orjson.loads(body) | ({"status": "PENDING"} if b"task_type" in body else {})
    assert orjson.loads(message.value() or b"") == expected
    assert message.headers() == [("trace", b"xyz"), ("carteiro_redrives", b"1")]


async def test_fetched_payloads_are_sent_one_by_one(kit: Kit) -> None:
    """A page of such payloads might be larger than memory, and take longer than a claim holds."""
    for at, id in enumerate(("T-1", "T-2", "T-3")):
        await kit.keep(_oversized(kit, orjson.dumps(a_ticket(id)), at=at))
    await kit.keep(a_dead_ticket(a_ticket("T-4")), a_dead_ticket(a_ticket("T-5")))
    sizes: list[int] = []

    class Counting:
        async def send(self, topic: str, envelopes: Sequence[Envelope]) -> Sequence[Any]:
            sizes.append(len(envelopes))
            return await kit.publisher.send(topic, envelopes)

    await kit.ran(producer=Counting())

    assert sizes == [2, 1, 1, 1]


async def test_another_record_at_its_place_is_not_sent_for_it(kit: Kit) -> None:
    """Somebody made the topic anew."""
    body = orjson.dumps(a_ticket())
    await kit.keep(_oversized(kit, body, said=orjson.dumps(a_ticket(priority=6))))

    assert await kit.ran() == {"T-1": "nothing_kept"}
    assert len(kit.produced()) == 1


@pytest.mark.parametrize("place", ["{topic}|0|0", "{topic}|7|0", "nowhere|0|0", "?"])
async def test_missing_payload_is_reported(kit: Kit, place: str) -> None:
    """The topic keeps a ticket for some days, and may be gone itself."""
    assert await fetched(kit.settings, place.format(topic=kit.settings.topic)) is None


async def test_a_record_that_its_topic_gave_up_is_gone(kit: Kit) -> None:
    """Those after it are other tickets."""
    _oversized(kit, b"{}")
    _oversized(kit, b"[]")
    admin = AdminClient({"bootstrap.servers": kit.settings.bootstrap_servers})
    [deleted] = admin.delete_records([TopicPartition(kit.settings.topic, 0, 1)]).values()
    deleted.result(30)

    first, second = [await fetched(kit.settings, f"{kit.settings.topic}|0|{at}") for at in (0, 1)]

    assert (first, second and second.body) == (None, b"[]")


async def test_unreachable_broker_does_not_count_as_a_missing_payload(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run may well find it."""
    monkeypatch.setattr("carteiro.tickets.archive.fetching._PATIENCE_S", 0.2)
    away = kit.settings.model_copy(update={"bootstrap_servers": f"{HOST}:{free_port()}"})

    with pytest.raises(KafkaAway, match=kit.settings.topic):
        await fetched(away, f"{kit.settings.topic}|0|0")


# --- what is not ------------------------------------------------------------------------------


async def test_record_that_is_not_a_ticket_is_quarantined_and_sent_back_byte_by_byte_on_request(
    kit: Kit,
) -> None:
    """Released first: nobody sends by accident what was set apart."""
    body = b"\xff\xfe{not JSON"
    await kit.keep(a_dead_ticket(body))
    [(id, first)] = (await kit.ran()).items()
    set_apart = await kit.ticket(id)
    raw = replace(TERMS, is_raw=True)
    refused = await kit.ran(Wanted(ids=(id,)), terms=raw)

    step = kit.redrive()._step("released")
    await kit.archive.mark([set_apart], "dead", step)
    sent = await kit.ran(Wanted(ids=(id,)), terms=raw)

    assert (first, set_apart.state) == ("undecodable", "quarantined")
    assert (refused, sent) == ({id: "quarantined"}, {id: "redriven"})
    [message] = kit.produced()
    assert message.value() == body


async def test_a_ticket_kept_as_bytes_goes_back_as_a_ticket(kit: Kit) -> None:
    """That no document could hold it is our affair."""
    odd = a_ticket("T-1") | {"$where": {"a.b": 2**64 - 1}}
    await kit.keep(a_dead_ticket(odd))

    assert await kit.ran() == {"T-1": "redriven"}

    [message] = kit.produced()
    assert orjson.loads(message.value() or b"") == odd | {"status": "PENDING"}


async def test_numbers_go_back_digit_for_digit(kit: Kit) -> None:
    """Read and written again they would be other numbers."""
    body = (
        b'{"ticket_id":"T-1","task_type":"BUILD","amount":12345678901234567890123,'
        b'"status":"RUNNING","rate":0.12345678901234567890}'
    )
    await kit.keep(a_dead_ticket(body))

    assert await kit.ran() == {"T-1": "redriven"}

    [message] = kit.produced()
    assert message.value() == body.replace(b"RUNNING", b"PENDING")


async def test_a_deeply_nested_ticket_goes_back(kit: Kit) -> None:
    """It was read once, so it can be read again."""
    await kit.keep(a_dead_ticket(a_deep_ticket()))

    assert await kit.ran() == {"T-1": "redriven"}

    [message] = kit.produced()
    assert message.value() == a_deep_ticket().replace(b"RUNNING", b"PENDING")


def test_edited_fields_replace_the_stored_bytes() -> None:
    """Not the bytes next to them, which say what was wrong."""
    fields = a_ticket(rate=0.5)
    raw = b'{"ticket_id":"T-1","task_type":"BUILD","rate":0.12345678901234567890}'

    sent = judge(_archived(fields=fields, raw=raw), TERMS, now=NOW)

    assert isinstance(sent, Envelope)
    assert orjson.loads(sent.value) == fields | {"status": "PENDING"}


async def test_ticket_that_keeps_dying_is_not_redriven(kit: Kit) -> None:
    """Unless somebody insists."""
    await kit.keep(a_dead_ticket(redrives=MOST_REDRIVES))

    stopped = await kit.ran()
    forced = await kit.ran(terms=replace(TERMS, is_forced=True))

    assert (stopped, forced) == ({"T-1": "too_often"}, {"T-1": "redriven"})


def _archived(**facts: Any) -> Archived:
    plain = Archived(
        id="T-1",
        type="BUILD",
        state="dead",
        reason="max_retries_exceeded",
        metadata={},
        processed_at=NOW,
        published_at=NOW,
        source="",
        redrives=0,
        deaths=1,
        run="",
        run_at=None,
        occurrences=(),
        history=(),
        headers=(),
        fields=a_ticket(),
        raw=None,
        version=1,
    )
    return replace(plain, **facts)


@pytest.mark.parametrize(
    ("facts", "answer"),
    [
        ({"state": "redriven"}, "already"),
        ({"state": "quarantined"}, "quarantined"),
        ({"state": "redriving", "run_at": NOW}, "elsewhere"),
        ({"fields": None, "raw": None}, "nothing_kept"),
        ({"fields": None, "raw": b""}, "undecodable"),
        ({"fields": None, "raw": b'{"ticket_id": 1}'}, "undecodable"),
        ({"redrives": MOST_REDRIVES}, "too_often"),
    ],
)
def test_why_nothing_is_sent(facts: dict[str, Any], answer: Answer) -> None:
    """Each case has a name, so that people know what to do."""
    assert judge(_archived(**facts), TERMS, now=NOW) == answer


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"state": "redriving", "run_at": NOW - STALE_AFTER},
        {"state": "redriving", "run_at": None},
        {"redrives": MOST_REDRIVES - 1},
    ],
)
def test_selection_of_tickets_to_send(facts: dict[str, Any]) -> None:
    """Also what a run left behind that was killed."""
    assert isinstance(judge(_archived(**facts), TERMS, now=NOW), Envelope)


# --- stopped on the way -----------------------------------------------------------------------


async def test_run_killed_after_producing_sends_once_more_and_reports_it(kit: Kit) -> None:
    """Not at once: as long as the other run may be alive it is left to it."""
    await kit.keep(a_dead_ticket())
    with pytest.raises(_Killed):
        await kit.ran(producer=_Producer(kit.publisher, after=_die))

    at_once = await kit.ran()
    kit.now += STALE_AFTER
    later = await kit.ran()

    assert (at_once, later) == ({"T-1": "elsewhere"}, {"T-1": "again"})
    assert len(kit.produced()) == 2
    assert (await kit.ticket()).state == "redriven"


async def test_killed_before_producing_it_is_sent_by_the_next_run(kit: Kit) -> None:
    """The progress stands in the documents."""
    await kit.keep(*(a_dead_ticket(a_ticket(f"T-{each}"), at=each) for each in range(3)))

    def die() -> None:
        raise _Killed

    with pytest.raises(_Killed):
        await kit.ran(producer=_Producer(kit.publisher, before=die))
    kit.now += STALE_AFTER

    assert await kit.ran() == {"T-0": "again", "T-1": "again", "T-2": "again"}
    assert len(kit.produced()) == 3


async def test_without_redis_nothing_is_sent(kit: Kit) -> None:
    """It is dead as before, and the next run sends it."""
    await kit.keep(a_dead_ticket())
    away = RetryCounter(f"redis://{HOST}:{free_port()}/0")

    with pytest.raises(CountsAway, match=r"tickets\.redis"):
        await kit.ran(counts=away)

    found = await kit.ticket()
    assert (found.state, found.history[-1]["what"]) == ("dead", "republish failed")
    assert found.redrives == 0
    assert kit.produced() == []
    assert await kit.ran() == {"T-1": "redriven"}
    await away.close()


async def test_a_kafka_that_takes_nothing_is_not_asked_for_each(kit: Kit) -> None:
    """Each would take its time, and the rest is dead as before."""
    many = [a_dead_ticket(a_ticket(f"T-{each}"), at=each) for each in range(MOST_FAILED + 5)]
    await kit.keep(*many)

    answers = await kit.ran(topic="there-is-no-such-topic")

    assert list(answers.values()) == ["failed"] * MOST_FAILED
    assert await kit.archive.count(Wanted(states=("dead",))) == len(many)


async def test_ticket_refused_by_kafka_stays_dead(kit: Kit, kafka: Broker) -> None:
    """With what Kafka said in its history."""
    small = kafka.new_topic(settings={"max.message.bytes": "70000"})
    await kit.keep(a_dead_ticket(a_ticket("large", text=_incompressible())), a_dead_ticket(at=1))

    answers = await kit.ran(topic=small)

    assert answers == {"large": "failed", "T-1": "redriven"}
    failed = await kit.ticket("large")
    assert failed.state == "dead"
    assert failed.history[-1]["what"] == "republish failed"


def _incompressible() -> str:

    return random.Random(7).randbytes(100_000).hex()

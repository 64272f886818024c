"""From the dead letter topic into the archive, with real servers that come and go."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from confluent_kafka import Consumer, TopicPartition

from carteiro.config import TicketSettings
from carteiro.tickets import Ticket, Tickets
from carteiro.tickets.archive.archiver import Archiver
from carteiro.tickets.archive.document import OURS, Kept, Step, Wanted
from carteiro.tickets.archive.fetching import fetched
from carteiro.tickets.archive.mongo import MongoArchive
from carteiro.tickets.archive.reader import DeadLetterLog
from carteiro.tickets.archive.redrive import Redrive, RedriveTerms
from carteiro.tickets.consume.counter import RetryCounter
from carteiro.tickets.consume.worker import TicketWorker
from carteiro.tickets.dead_letters.envelope import DeadTicket, Envelope, opened
from carteiro.tickets.dead_letters.publisher import Publisher
from carteiro.tickets.kafka_client import SESSION_MS
from carteiro.tickets.ticket import Record
from support.alertmanager_server import AlertmanagerServer
from support.archiving import kept_in, tickets_settings, until
from support.dead_tickets import a_deep_ticket, a_letter, a_ticket
from support.kafka_server import Broker, a_kafka
from support.memory_lane import AT_ONCE
from support.mongo_server import MongoServer
from support.redis_server import RedisServer
from support.services import HOST, free_port

pytestmark = pytest.mark.servers

PARTITIONS = 3


@pytest.fixture
def lane(topics: dict[str, str], mongo: MongoServer, database: str) -> dict[str, str]:
    """Settings of a lane of its own."""
    return topics | {"MONGO": mongo.url, "MONGO_DATABASE": database}


@asynccontextmanager
async def _archiving(settings: TicketSettings) -> AsyncIterator[Archiver]:
    archiver = Archiver(settings, look_every=timedelta(milliseconds=100))
    running = asyncio.create_task(archiver.run())
    try:
        yield archiver
    finally:
        archiver.stop()
        await running


@asynccontextmanager
async def _opened(settings: TicketSettings) -> AsyncIterator[MongoArchive]:
    """Closed after a failure, too: tasks of an open client do not end with their loop."""
    archive = MongoArchive(settings)
    try:
        yield archive
    finally:
        await archive.close()


async def _published(settings: TicketSettings, letters: Sequence[Envelope]) -> None:
    publisher = Publisher(settings)
    try:
        assert set(await publisher.send(settings.dlq_topic, letters)) == {None}
    finally:
        await publisher.close()


def _letters(*numbers: int) -> list[Envelope]:
    return [a_letter(a_ticket(f"T-{each:03}"), at=each) for each in numbers]


def committed(settings: TicketSettings) -> int:
    """Count the records that the archive will never read again."""
    options = {
        "bootstrap.servers": settings.bootstrap_servers,
        "group.id": f"{settings.group}-dlq",
    }
    consumer = Consumer(options)
    places = [TopicPartition(settings.dlq_topic, each) for each in range(PARTITIONS)]
    try:
        return sum(max(0, each.offset) for each in consumer.committed(places, timeout=10))
    finally:
        consumer.close()


async def test_dead_letters_are_archived_and_then_committed(
    lane: dict[str, str], mongo: MongoServer, database: str
) -> None:
    """Each as one document; nothing of it is read again."""
    settings = tickets_settings(**lane)
    await _published(settings, _letters(*range(20)))

    async with _archiving(settings):
        await until(lambda: len(kept_in(mongo, database)) == 20)

    assert committed(settings) == 20
    kept = kept_in(mongo, database)
    assert [each["ticket_id"] for each in kept] == [f"T-{each:03}" for each in range(20)]
    assert all(len(each[OURS]["occurrences"]) == 1 for each in kept)


async def test_a_ticket_that_dies_again_after_a_redrive_is_one_document(
    lane: dict[str, str], mongo: MongoServer, database: str
) -> None:
    """With two deaths; the same letter twice, as after a crash, is one."""
    settings = tickets_settings(**lane)
    again = a_letter(a_ticket(), at=9, redrives=1)

    async with _archiving(settings):
        await _published(settings, [a_letter(a_ticket(), at=3), a_letter(a_ticket(), at=3), again])
        await until(lambda: committed(settings) == 3)

    [kept] = kept_in(mongo, database)
    assert [each["source"] for each in kept[OURS]["occurrences"]] == [
        "execution.tickets|0|3",
        "execution.tickets|0|9",
    ]
    assert kept[OURS]["redrives"] == 1


async def test_a_republished_ticket_that_succeeds_is_done_in_the_archive(
    lane: dict[str, str], mongo: MongoServer, database: str, redis_server: RedisServer
) -> None:
    """From its death to its good end: nobody has to look whether it helped."""
    settings = tickets_settings(**lane, REDIS=redis_server.url)
    is_mended = asyncio.Event()
    tickets = Tickets()
    ticket = a_ticket(f"T-{uuid4().hex}")

    @tickets.handler("BUILD", retry=AT_ONCE)
    async def build(_: Ticket) -> None:
        if not is_mended.is_set():
            raise ValueError("broken")

    def states() -> list[str]:
        return [each[OURS]["state"] for each in kept_in(mongo, database)]

    async with (
        _archiving(settings),
        _working(settings, tickets),
        _opened(settings) as archive,
        AsyncExitStack() as closed,
    ):
        publisher, counter = Publisher(settings), RetryCounter(settings.redis)
        closed.push_async_callback(publisher.close)
        closed.push_async_callback(counter.close)
        record = Envelope(ticket["ticket_id"].encode(), orjson.dumps(ticket), ())
        assert await publisher.send(settings.topic, [record]) == [None]
        await until(lambda: states() == ["dead"])
        is_mended.set()
        redrive = Redrive(
            archive,
            counter,
            publisher,
            fetch=partial(fetched, settings),
            topic=settings.topic,
            terms=RedriveTerms(by="ana"),
        )
        assert [each.answer async for done in redrive.run(Wanted()) for each in done] == [
            "redriven"
        ]
        await until(lambda: states() == ["done"])

    [kept] = kept_in(mongo, database)
    assert [each["what"] for each in kept[OURS]["history"]][-1] == "done"
    assert kept[OURS]["deaths"] == 1


@asynccontextmanager
async def _working(settings: TicketSettings, tickets: Tickets) -> AsyncIterator[None]:
    worker = TicketWorker(settings, tickets, urls={})
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def test_an_alert_and_a_figure_last_until_somebody_has_done_something(
    lane: dict[str, str], alertmanager: AlertmanagerServer
) -> None:
    """Over a restart, too: the archive itself says what waits."""
    type_ = f"TYPE-{uuid4().hex}"
    settings = tickets_settings(**lane, ALERTMANAGER=alertmanager.url)
    waiting = f'carteiro_tickets_in_archive{{state="dead",task_type="{type_}"}}'

    def alerts() -> list[str]:
        found = [each for each in alertmanager.alerts() if each["labels"].get("task_type") == type_]
        return [each["annotations"]["summary"] for each in found]

    letters = [a_letter(a_ticket(each, type_), at=at) for at, each in enumerate("ABC")]
    async with _archiving(settings) as archiver:
        await _published(settings, letters)
        await until(lambda: f"{waiting} 3.0" in archiver.page().decode())
        await until(lambda: len(alerts()) == 1 and alerts()[0].endswith(": 3"))
    async with _archiving(settings) as archiver, _opened(settings) as archive:
        await until(lambda: f"{waiting} 3.0" in archiver.page().decode())
        page = await archive.find(Wanted(), cursor=None, limit=3)
        step = Step("done with", "ana", "", datetime.now(UTC))
        await archive.mark(page.rows[:1], "acknowledged", step)
        await until(lambda: len(alerts()) == 1 and alerts()[0].endswith(": 2"))
        await archive.mark(page.rows[1:2], "quarantined", step)
        await archive.purge(Wanted(ids=(page.rows[2].id,)))
        await until(lambda: alerts() == [])
        assert f"{waiting} 0.0" in archiver.page().decode()


def test_an_archive_that_dies_is_missed_as_soon_as_a_worker(lane: dict[str, str]) -> None:
    """And the file of properties may say otherwise."""
    given: list[dict[str, Any]] = []

    class Noting(Consumer):
        def __init__(self, options: dict[str, Any]) -> None:
            given.append(options)
            super().__init__(options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("carteiro.tickets.archive.reader.Consumer", Noting)
        DeadLetterLog(tickets_settings(**lane), on_trouble=lambda _: None)._consumer.close()
    assert given[0]["session.timeout.ms"] == str(SESSION_MS)


async def test_whatever_lies_on_the_topic_stops_nothing(
    lane: dict[str, str], mongo: MongoServer, database: str
) -> None:
    """A record that is not a dead letter of ours is archived by its place."""
    settings = tickets_settings(**lane)
    garbage = [Envelope(b"k", b"\xff\x00 nonsense", ()), Envelope(b"k", b"", ())]

    async with _archiving(settings):
        await _published(settings, [*garbage, Envelope(b"k", b"[1]", ()), *_letters(1)])
        await until(lambda: committed(settings) == 4)

    ids = [each["ticket_id"] for each in kept_in(mongo, database)]
    assert len(ids) == 4
    assert sum(each.startswith(f"poison:{settings.dlq_topic}:") for each in ids) == 3


async def test_unwritable_dead_letter_does_not_stop_the_archiver(
    lane: dict[str, str], mongo: MongoServer, database: str
) -> None:
    """It would be met again at every start."""
    settings = tickets_settings(**lane)

    async with _archiving(settings):
        await _published(settings, [a_letter(a_deep_ticket("deep"), at=1), *_letters(2)])
        await until(lambda: committed(settings) == 2)

    plain, deep = kept_in(mongo, database)
    assert (plain["ticket_id"], deep["ticket_id"]) == ("T-002", "deep")
    assert deep[OURS]["raw"] == a_deep_ticket("deep")


async def test_a_letter_that_cannot_be_opened_is_kept_as_bytes(
    lane: dict[str, str], mongo: MongoServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the reason, which nobody foresaw: all others go on."""
    settings = tickets_settings(**lane)

    def unforeseen(record: Record) -> DeadTicket:
        if record.body == b"odd":
            raise RecursionError
        return opened(record)

    monkeypatch.setattr("carteiro.tickets.archive.archiver.opened", unforeseen)
    async with _archiving(settings):
        await _published(settings, [Envelope(b"k", b"odd", (("h", b"1"),)), *_letters(1)])
        await until(lambda: committed(settings) == 2)

    plain, odd = kept_in(mongo, database)
    assert plain["ticket_id"] == "T-001"
    assert odd["ticket_id"].startswith(f"poison:{settings.dlq_topic}:")
    assert odd[OURS]["raw"] == b"odd"


async def test_a_topic_that_is_missing_is_made(
    lane: dict[str, str], mongo: MongoServer, database: str
) -> None:
    """The first to come makes it: an archive need not wait for a worker."""
    settings = tickets_settings(**lane | {"DLQ_TOPIC": f"{lane['DLQ_TOPIC']}.new"})

    async with _archiving(settings) as archiver:
        await until(lambda: not archiver.waits_for and _has_topic(settings))
        await _published(settings, _letters(1))
        await until(lambda: committed(settings) == 1)

    assert len(kept_in(mongo, database)) == 1


async def test_archiver_ends_though_a_library_swallows_a_cancellation(
    lane: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """MongoDB's driver does, before Python 3.12, if an answer comes at the same moment."""
    is_asked = asyncio.Event()
    swallowed: list[bool] = []

    async def census(_: MongoArchive) -> list[Kept]:
        is_asked.set()
        if not swallowed:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            swallowed.append(True)
        return []

    monkeypatch.setattr(MongoArchive, "census", census)
    async with _archiving(tickets_settings(**lane)):
        await is_asked.wait()

    assert swallowed


def _has_topic(settings: TicketSettings) -> bool:
    broker = Broker(int(settings.bootstrap_servers.rpartition(":")[2]))
    return settings.dlq_topic in broker.admin().list_topics(timeout=10).topics


# --- servers that come and go -----------------------------------------------------------------


async def test_archiver_waits_for_an_unreachable_database(
    topics: dict[str, str], own_mongo: MongoServer
) -> None:
    """Nothing is committed meanwhile, it says what it waits for, and goes on by itself."""
    own_mongo.kill()
    settings = tickets_settings(**topics, MONGO=own_mongo.url)
    await _published(settings, _letters(1, 2, 3))

    async with _archiving(settings) as archiver:
        await until(lambda: "MongoDB" in archiver.waits_for)
        assert f"{HOST}:{own_mongo.port}" in archiver.waits_for
        assert b"carteiro_tickets_archive_up 0.0" in archiver.page()
        assert committed(settings) == 0
        own_mongo.start()
        await until(lambda: committed(settings) == 3)
        await until(lambda: not archiver.waits_for)

    assert len(kept_in(own_mongo, settings.mongo_database)) == 3


async def test_a_database_that_is_killed_on_the_way_loses_nothing(
    topics: dict[str, str], own_mongo: MongoServer
) -> None:
    """All that came before, during and after is there, each once."""
    settings = tickets_settings(**topics, MONGO=own_mongo.url)

    async with _archiving(settings) as archiver:
        await _published(settings, _letters(*range(30)))
        await until(lambda: committed(settings) > 0)
        own_mongo.kill()
        await _published(settings, _letters(*range(30, 60)))
        await until(lambda: "MongoDB" in archiver.waits_for)
        own_mongo.start()
        await _published(settings, _letters(*range(60, 90)))
        await until(lambda: committed(settings) == 90)

    kept = kept_in(own_mongo, settings.mongo_database)
    assert [each["ticket_id"] for each in kept] == [f"T-{each:03}" for each in range(90)]
    assert all(len(each[OURS]["occurrences"]) == 1 for each in kept)


async def test_a_broker_that_is_killed_is_waited_for(
    mongo: MongoServer, database: str, topics: dict[str, str]
) -> None:
    """It says so, and goes on by itself."""
    with a_kafka() as own_kafka:
        own_kafka.create_topic("dead", partitions=PARTITIONS)
        settings = tickets_settings(
            **topics
            | {
                "BOOTSTRAP_SERVERS": own_kafka.bootstrap_servers,
                "DLQ_TOPIC": "dead",
                "MONGO": mongo.url,
                "MONGO_DATABASE": database,
            }
        )
        await _published(settings, _letters(1))

        async with _archiving(settings) as archiver:
            await until(lambda: len(kept_in(mongo, database)) == 1)
            own_kafka.kill()
            await until(lambda: "Kafka" in archiver.waits_for)
            own_kafka.start()
            await _published(settings, _letters(2))
            await until(lambda: len(kept_in(mongo, database)) == 2)
            await until(lambda: not archiver.waits_for)


async def test_an_alertmanager_that_says_nothing_holds_up_nothing(
    lane: dict[str, str], mongo: MongoServer, database: str
) -> None:
    """Alerts are not in the way of a commit."""
    with closing(socket.create_server((HOST, 0))) as silent:
        port = silent.getsockname()[1]
        settings = tickets_settings(**lane, ALERTMANAGER=f"http://{HOST}:{port}")

        async with _archiving(settings):
            for each in range(3):
                await _published(settings, _letters(each))
                await until(lambda: committed(settings) == each + 1)  # noqa: B023 - used at once

    assert len(kept_in(mongo, database)) == 3


# --- several ----------------------------------------------------------------------------------


async def test_two_archives_share_the_work(
    lane: dict[str, str], mongo: MongoServer, database: str
) -> None:
    """One comes, one goes, and each death is archived once."""
    settings = tickets_settings(**lane)

    async with _archiving(settings):
        await _published(settings, _letters(*range(20)))
        await until(lambda: len(kept_in(mongo, database)) > 0)
        async with _archiving(settings):
            await _published(settings, _letters(*range(20, 40)))
            await until(lambda: len(kept_in(mongo, database)) == 40)
        await _published(settings, _letters(*range(40, 60)))
        await until(lambda: committed(settings) == 60)

    kept = kept_in(mongo, database)
    assert len(kept) == 60
    assert all(len(each[OURS]["occurrences"]) == 1 for each in kept)


async def test_an_archive_that_is_killed_loses_nothing(
    lane: dict[str, str], mongo: MongoServer, database: str, tmp_path: Path
) -> None:
    """Wherever it was: what was written and not committed is read again, and known."""
    lane |= {"KAFKA_FILE": str(_soon_missed(tmp_path))}
    settings = tickets_settings(**lane)
    for round_ in range(2):
        process = _process(lane)
        await _published(settings, _letters(*range(20 * round_, 20 * round_ + 20)))
        await until(lambda: len(kept_in(mongo, database)) > 20 * round_)  # noqa: B023 - used at once
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(process.wait)

    last = _process(lane)
    await _published(settings, _letters(40))  # that it commits this one shows that it runs
    await until(lambda: committed(settings) == 41)
    last.send_signal(signal.SIGTERM)

    assert await asyncio.to_thread(last.wait, 30) == 0
    kept = kept_in(mongo, database)
    assert len(kept) == 41
    assert all(len(each[OURS]["occurrences"]) == 1 for each in kept)


def _soon_missed(folder: Path) -> Path:
    """Properties of members whose death is noticed as soon as a broker allows."""
    file = folder / "kafka.properties"
    file.write_text("session.timeout.ms=6000\nheartbeat.interval.ms=1000\n", "utf-8")
    return file


def _process(lane: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    ours = {f"CARTEIRO_TICKETS_{name}": each for name, each in lane.items()}
    ours["CARTEIRO_TICKETS_METRICS_PORT"] = str(free_port())
    command = [sys.executable, "-m", "carteiro.cli", "tickets", "archive"]
    return subprocess.Popen(command, env=os.environ | ours, stderr=subprocess.DEVNULL)

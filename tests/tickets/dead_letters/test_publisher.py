"""A record is on the broker before anybody hears that it is, and a broker that is down says so."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import KafkaError

from carteiro.config import TicketSettings
from carteiro.errors import ConfigError
from carteiro.tickets.dead_letters import publisher as module
from carteiro.tickets.dead_letters.envelope import Envelope, opened
from carteiro.tickets.dead_letters.publisher import TIMED_OUT, Publisher
from carteiro.tickets.errors import PublishFailed
from support.deaths import a_death, a_record, publish_one, settings_of
from support.services import HOST, free_port
from support.topics import a_mock_broker, records_of


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """Where a broker in memory is."""
    with a_mock_broker() as servers:
        yield servers


@pytest.fixture
def settings(broker: str) -> TicketSettings:
    """A topic of its own for each test."""
    return settings_of(bootstrap_servers=broker, dlq_topic=f"dlq-{uuid4().hex}")


@asynccontextmanager
async def publishing(settings: TicketSettings) -> AsyncIterator[Publisher]:
    """A publisher, until the end of the test."""
    publisher = Publisher(settings)
    try:
        yield publisher
    finally:
        await publisher.close()


async def test_published_dead_letter_can_be_read(settings: TicketSettings) -> None:
    """When the call returns, anybody can read it."""
    async with publishing(settings) as publisher:
        await publish_one(publisher, a_death(error="password=hunter22"))

        [record] = records_of(settings.bootstrap_servers, settings.dlq_topic)

    dead = opened(record)
    assert (dead.id, dead.source) == ("ticket-1", "execution.tickets|2|41")
    assert dead.metadata["original_error"] == "password=***"
    assert record.key == b"ticket-1"


async def test_dead_letters_of_a_ticket_are_in_order_in_one_partition(
    settings: TicketSettings,
) -> None:
    """Its latest death is the last that the archive sees."""
    async with publishing(settings) as publisher:
        deaths = [a_death(failures=failures) for failures in range(1, 21)]
        await publisher.publish(deaths)

        records = records_of(settings.bootstrap_servers, settings.dlq_topic)

    assert len({each.partition for each in records}) == 1
    assert [opened(each).metadata["retry_count"] for each in records] == list(range(1, 21))


async def test_record_that_is_not_a_ticket_is_published_too(settings: TicketSettings) -> None:
    """Garbage and a null have dead letters, each its own."""
    bodies = [b"\xff", None, b"{}"]
    async with publishing(settings) as publisher:
        for offset, body in enumerate(bodies):
            await publish_one(
                publisher, a_death(a_record(body, offset=offset), reason="undecodable")
            )

        dead = [opened(each) for each in records_of(settings.bootstrap_servers, settings.dlq_topic)]

    assert {each.raw for each in dead} == set(bodies)
    assert len({each.id for each in dead}) == 3


async def test_many_are_sent_at_once_and_each_has_its_answer(settings: TicketSettings) -> None:
    """A redriven ticket goes to any topic, as it is."""
    topic = f"tickets-{uuid4().hex}"
    sent = [Envelope(f"key-{each}".encode(), b"value", (("hop", b"1"),)) for each in range(2500)]
    async with publishing(settings) as publisher:
        assert await publisher.send(topic, sent) == [None] * 2500
        assert await publisher.send(topic, []) == []

        records = records_of(settings.bootstrap_servers, topic)

    assert {each.key for each in records} == {each.key for each in sent}
    assert len(records) == 2500


async def test_one_that_cannot_be_sent_does_not_keep_the_others(settings: TicketSettings) -> None:
    """Each has its own answer, in its place."""
    too_large = Envelope(b"large", b"x" * (module._LARGEST + 1), ())
    async with publishing(settings) as publisher:
        fine = Envelope(b"fine", b"x", ())
        results = await publisher.send(settings.dlq_topic, [fine, too_large, fine])

    assert [each is None for each in results] == [True, False, True]
    assert isinstance(results[1], PublishFailed)
    assert results[1].error_type == "MSG_SIZE_TOO_LARGE"


async def test_one_dead_letter_of_a_batch_that_cannot_be_made_does_not_keep_the_others(
    settings: TicketSettings,
) -> None:
    """A bug of ours is the answer for that one alone, in its place."""
    deaths = [a_death(a_record(b"x", offset=offset)) for offset in range(3)]
    deaths[1] = replace(deaths[1], error=None)  # type: ignore[arg-type] # a bug
    async with publishing(settings) as publisher:
        results = await publisher.publish(deaths)

        found = [opened(e) for e in records_of(settings.bootstrap_servers, settings.dlq_topic)]

    assert results[::2] == [True, True]
    assert isinstance(results[1], Exception)
    assert not isinstance(results[1], PublishFailed)
    assert [each.source for each in found] == [
        deaths[0].ticket.record.place,
        deaths[2].ticket.record.place,
    ]


async def test_a_batch_is_waited_for_once(
    settings: TicketSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are."""
    waits: list[int] = []
    write_all = Publisher._results

    async def counted(self: Publisher, topic: str, envelopes: Sequence[Envelope]) -> Any:
        waits.append(len(envelopes))
        return await write_all(self, topic, envelopes)

    monkeypatch.setattr(Publisher, "_results", counted)
    async with publishing(settings) as publisher:
        results = await publisher.publish([a_death(failures=n) for n in range(1, 301)])

    assert (results, waits) == ([True] * 300, [300])


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is seconds long; here it need not be."""
    monkeypatch.setitem(module._OPTIONS, "message.timeout.ms", 500)
    monkeypatch.setitem(module._OPTIONS, "request.timeout.ms", 500)


@pytest.mark.usefixtures("_impatient")
async def test_unreachable_broker_fails_the_publish_in_time() -> None:
    """The ticket stays where it is, and is not run again."""
    async with publishing(settings_of(bootstrap_servers=f"{HOST}:{free_port()}")) as publisher:
        with pytest.raises(PublishFailed) as failed:
            await publish_one(publisher, a_death())

    assert failed.value.error_type == TIMED_OUT


async def test_no_answer_at_all_fails_it_too(
    settings: TicketSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should the library be silent, nobody waits for ever."""
    monkeypatch.setattr(module, "_BOUND_S", 0.0)
    async with publishing(settings) as publisher:
        with pytest.raises(PublishFailed) as failed:
            await publish_one(publisher, a_death())

    assert failed.value.error_type == TIMED_OUT


async def test_closing_ends_running_publishes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiting caller hears that it failed; a later one, too."""
    monkeypatch.setattr(module, "_LAST_WORDS_S", 0.1)
    publisher = Publisher(settings_of(bootstrap_servers=f"{HOST}:{free_port()}"))
    waiting = asyncio.create_task(publish_one(publisher, a_death()))
    await asyncio.sleep(0)

    await publisher.close()

    with pytest.raises(PublishFailed):
        await waiting
    with pytest.raises(PublishFailed) as failed:
        await publish_one(publisher, a_death())
    assert failed.value.error_type == "Closed"


async def test_after_an_error_for_good_there_is_a_new_producer(settings: TicketSettings) -> None:
    """The library gives a producer up when it cannot be sure of its order any more; the publisher goes on."""
    async with publishing(settings) as publisher:
        await publish_one(publisher, a_death())
        first = publisher._producing._producer

        publisher._producing._complained(KafkaError(KafkaError._FATAL, "out of order", fatal=True))
        while publisher._producing._producer is first:
            await asyncio.sleep(0.01)
        await publish_one(publisher, a_death())

        assert len(records_of(settings.bootstrap_servers, settings.dlq_topic)) == 2


async def test_a_queue_that_is_full_fails_it_for_now(
    settings: TicketSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker is down and thousands wait for it."""
    monkeypatch.setitem(module._OPTIONS, "queue.buffering.max.messages", 1)
    monkeypatch.setattr(module, "_LAST_WORDS_S", 0.1)
    away = settings_of(bootstrap_servers=f"{HOST}:{free_port()}")
    async with publishing(away) as publisher:
        first = asyncio.create_task(publish_one(publisher, a_death()))
        await asyncio.sleep(0)

        with pytest.raises(PublishFailed) as failed:
            await publish_one(publisher, a_death())

        assert failed.value.error_type == "QueueFull"
        first.cancel()


async def test_properties_that_a_producer_cannot_have_are_refused_at_once(tmp_path: Path) -> None:
    """They would break the promise that nothing is written twice."""
    file = tmp_path / "kafka.properties"
    file.write_text("client.id=hunter22\nmax.in.flight=1000\n", "utf-8")

    with pytest.raises(ConfigError, match=r"max\.in\.flight") as error:
        Publisher(settings_of(kafka_file=str(file)))

    assert "hunter22" not in str(error.value)

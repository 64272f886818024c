"""The publisher and a real broker: sizes that it refuses, its absence, and its return."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import orjson
import pytest

from carteiro.config import TicketSettings
from carteiro.tickets.dead_letters import publisher as module
from carteiro.tickets.dead_letters.envelope import TOPIC_LIMIT, DeadTicket, opened
from carteiro.tickets.dead_letters.publisher import TIMED_OUT, TOO_LARGE, Publisher
from carteiro.tickets.deaths import Death
from carteiro.tickets.errors import PublishFailed
from support.deaths import (
    a_death,
    a_record,
    a_ticket_record,
    publish_one,
    random_bytes,
    random_text,
    settings_of,
)
from support.kafka_server import Broker, KafkaServer, a_kafka
from support.shared_servers import shared_kafka
from support.stopping import stopped
from support.topics import records_of

pytestmark = pytest.mark.servers

AS_OURS = {"max.message.bytes": str(TOPIC_LIMIT), "compression.type": "snappy"}


@pytest.fixture
def broker() -> Broker:
    """A broker that nobody stops."""
    return shared_kafka()


@pytest.fixture
def mortal() -> Iterator[KafkaServer]:
    """A broker that a test may stop and kill."""
    with a_kafka() as server:
        yield server


@asynccontextmanager
async def publishing(settings: TicketSettings) -> AsyncIterator[Publisher]:
    """A publisher, until the end of the test."""
    publisher = Publisher(settings)
    try:
        yield publisher
    finally:
        await publisher.close()


def to(broker: Broker, topic: str) -> TicketSettings:
    """Settings that bury there."""
    return settings_of(bootstrap_servers=broker.bootstrap_servers, dlq_topic=topic)


async def buried(broker: Broker, death: Death, *, limit: int = TOPIC_LIMIT) -> DeadTicket:
    """The dead letter as it stands in a new topic with such a limit."""
    topic = broker.new_topic(settings=AS_OURS | {"max.message.bytes": str(limit)})
    async with publishing(to(broker, topic)) as publisher:
        await publish_one(publisher, death)
    [record] = records_of(broker.bootstrap_servers, topic)
    return opened(record)


async def test_two_mebibytes_that_do_not_compress_go_through(broker: Broker) -> None:
    """A record that the source takes and the dead letter topic does not, with its metadata, leaves its place."""
    record = a_record(b"\xff" + random_bytes(TOPIC_LIMIT - 1))

    dead = await buried(broker, a_death(record, reason="undecodable"))

    assert (dead.missing is not None, dead.raw, dead.source) == (True, None, record.place)


async def test_incompressible_ticket_of_this_size_keeps_the_part_that_fits(broker: Broker) -> None:
    """A little below the limit, the bytes are all there."""
    body = b"\xff" + random_bytes(TOPIC_LIMIT - 10_000)

    dead = await buried(broker, a_death(a_record(body), reason="undecodable"))

    assert (dead.missing, dead.raw) == (None, body)


async def test_a_large_ticket_that_compresses_is_kept_whole(broker: Broker) -> None:
    """The limit is on what is stored, which is smaller."""
    record = a_ticket_record(log=["the same line again"] * 200_000)

    dead = await buried(broker, a_death(record))

    assert len(record.body or b"") > 2 * TOPIC_LIMIT
    assert dead.fields == orjson.loads(record.body or b"")


async def test_a_topic_that_takes_less_than_ours_gets_less(broker: Broker) -> None:
    """Somebody else made it: the ticket is reported all the same."""
    record = a_ticket_record(blob=random_text(100_000))

    dead = await buried(broker, a_death(record), limit=50_000)

    assert (dead.id, dead.missing is None, dead.source) == ("ticket-1", False, record.place)


async def test_a_topic_that_takes_next_to_nothing_fails_it_for_good(broker: Broker) -> None:
    """No form fits: somebody has to change the topic; nothing goes round in circles."""
    with pytest.raises(PublishFailed) as failed:
        await buried(broker, a_death(), limit=500)

    assert failed.value.error_type == TOO_LARGE


async def test_refused_dead_letter_does_not_harm_the_rest_of_its_batch(broker: Broker) -> None:
    """They go in batches, and a batch is refused as a whole."""
    topic = broker.new_topic(settings=AS_OURS)
    large = a_record(b"\xff" + random_bytes(TOPIC_LIMIT), offset=1_000)
    deaths = [a_death(a_record(f"not JSON {n}".encode(), offset=n)) for n in range(200)]
    async with publishing(to(broker, topic)) as publisher:
        await publisher.publish([*deaths[:100], a_death(large), *deaths[100:]])

    dead = [opened(each) for each in records_of(broker.bootstrap_servers, topic)]
    assert {each.source for each in dead if each.missing} == {large.place}
    assert len(dead) == 201


async def test_a_missing_topic_fails_every_publish_until_it_is_there(
    broker: Broker,
) -> None:
    """Somebody has to make it; then the same publisher goes on."""
    topic = f"{broker.new_topic()}-missing"
    async with publishing(to(broker, topic)) as publisher:
        with pytest.raises(PublishFailed) as failed:
            await publish_one(publisher, a_death())
        assert failed.value.error_type in {"_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART"}

        broker.create_topic(topic)
        await published_in_the_end(publisher, a_death())

    assert len(records_of(broker.bootstrap_servers, topic)) == 1


async def published_in_the_end(publisher: Publisher, death: Death) -> None:
    """Try as the worker does: again and again, each time within the bound."""
    for _ in range(10):
        try:
            await publish_one(publisher, death)
        except PublishFailed:
            continue
        return
    pytest.fail("it never succeeds")


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is seconds long; here it need not be."""
    monkeypatch.setitem(module._OPTIONS, "message.timeout.ms", 2000)


@pytest.mark.usefixtures("_impatient")
async def test_a_broker_that_is_killed_and_comes_back_takes_it_then(mortal: KafkaServer) -> None:
    """With the same publisher; what was acknowledged before survives the kill."""
    topic = mortal.new_topic()
    async with publishing(to(mortal, topic)) as publisher:
        await publish_one(publisher, a_death(failures=1))
        mortal.kill()
        with pytest.raises(PublishFailed) as failed:
            await publish_one(publisher, a_death(failures=2))
        assert failed.value.error_type == TIMED_OUT

        mortal.start()
        await published_in_the_end(publisher, a_death(failures=3))

    found = {
        opened(each).metadata["retry_count"] for each in records_of(mortal.bootstrap_servers, topic)
    }
    assert {1, 3} <= found


@pytest.mark.usefixtures("_impatient")
async def test_a_broker_that_is_stopped_is_not_waited_for(mortal: KafkaServer) -> None:
    """It holds the connection and says nothing; when it wakes up, the same publisher goes on."""
    topic = mortal.new_topic()
    async with publishing(to(mortal, topic)) as publisher:
        await publish_one(publisher, a_death(failures=1))
        with stopped(mortal.pid), pytest.raises(PublishFailed):
            await publish_one(publisher, a_death(failures=2))
        await published_in_the_end(publisher, a_death(failures=3))

    found = {
        opened(each).metadata["retry_count"] for each in records_of(mortal.bootstrap_servers, topic)
    }
    assert {1, 3} <= found

"""The Kafka broker of the tests keeps every acknowledged record, however it ends."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from support.kafka_server import Broker, KafkaServer, a_kafka
from support.services import PATIENCE


@pytest.fixture
def own() -> Iterator[KafkaServer]:
    """A broker that a test may stop and kill."""
    with a_kafka() as server:
        yield server


def produce(broker: Broker, topic: str, value: str) -> None:
    """Produce a record and wait for its acknowledgement."""
    refused: list[object] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "acks": "all"})
    producer.produce(topic, value, on_delivery=lambda error, _record: refused.append(error))
    producer.flush(PATIENCE)
    assert refused == [None]


def consume(broker: Broker, topic: str, group: str) -> str:
    """The first record of a topic that a group has not committed; commits it."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        record = consumer.poll(PATIENCE)
        assert record is not None
        assert record.error() is None
        consumer.commit(message=record, asynchronous=False)
        value = record.value()
        assert isinstance(value, bytes)
        return value.decode()
    finally:
        consumer.close()


def committed(broker: Broker, topic: str, group: str) -> int:
    """Committed offset of a group."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    try:
        [found] = consumer.committed([TopicPartition(topic, 0)], PATIENCE)
        return found.offset
    finally:
        consumer.close()


def test_record_arrives(kafka: Broker) -> None:
    """Over a real connection, through a group."""
    topic = kafka.new_topic()

    produce(kafka, topic, "hello")

    assert consume(kafka, topic, uuid4().hex) == "hello"


@pytest.mark.parametrize("end", [KafkaServer.stop, KafkaServer.kill])
def test_acknowledged_records_survive_a_restart(
    own: KafkaServer, end: Callable[[KafkaServer], None]
) -> None:
    """Topics, records and committed offsets; the same port, and another process."""
    topic = own.new_topic(partitions=1)
    produce(own, topic, "first")
    produce(own, topic, "second")
    first, before = consume(own, topic, "group"), own.pid

    end(own)
    is_gone = not own.is_ready()
    own.start()

    assert is_gone
    assert own.pid != before
    assert (first, consume(own, topic, "group")) == ("first", "second")
    assert committed(own, topic, "group") == 2


def test_topic_has_the_settings_of_its_creation(kafka: Broker) -> None:
    """Its number of partitions; a mere lookup creates no topic."""
    topic = kafka.new_topic(partitions=3, settings={"retention.ms": "1000"})

    known = kafka.admin().list_topics(timeout=PATIENCE).topics

    assert len(known[topic].partitions) == 3
    assert f"not-{topic}" not in known


def test_second_topic_of_that_name_is_refused(kafka: Broker) -> None:
    """A test would read the records of another one."""
    topic = kafka.new_topic()

    with pytest.raises(KafkaException, match="already exists"):
        kafka.create_topic(topic)

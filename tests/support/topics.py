"""Topics, as a test reads them; and brokers in memory, for tests that need no real one."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from carteiro.tickets.ticket import Record
from support.services import PATIENCE

_LOG = logging.getLogger(__name__)  # or the clients would write to stderr themselves


def records_of(bootstrap_servers: str, topic: str) -> list[Record]:
    """All records of a topic, partition by partition."""
    options = {"bootstrap.servers": bootstrap_servers, "group.id": "a test", "log_level": 0}
    options |= {
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 10,
        "fetch.message.max.bytes": 32 * 1024 * 1024,
    }
    consumer = Consumer(options, logger=_LOG)
    try:
        partitions = consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
        return [
            record for number in partitions for record in _of_partition(consumer, topic, number)
        ]
    finally:
        consumer.close()


def _of_partition(consumer: Consumer, topic: str, number: int) -> Iterator[Record]:
    first, end = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=PATIENCE)
    consumer.assign([TopicPartition(topic, number, first)])
    at = first
    while at < end:
        found = consumer.poll(PATIENCE)
        assert found is not None, "what is in the topic does not come"
        assert found.error() is None, str(found.error())
        record = _record(found)
        yield record
        at = record.offset + 1


def _record(found: Any) -> Record:  # the library has no types for it
    headers = tuple(found.headers() or ())
    place = (found.topic(), found.partition(), found.offset())
    return Record(*place, found.key(), found.value(), headers)


@contextmanager
def a_mock_broker() -> Iterator[str]:
    """A broker that the client library plays, on a loopback port; it takes any topic, and forgets all."""
    options = {"bootstrap.servers": "replaced", "test.mock.num.brokers": 1, "log_level": 0}
    holder = Producer(options, logger=_LOG)
    brokers = holder.list_topics(timeout=PATIENCE).brokers.values()
    yield ",".join(f"{each.host}:{each.port}" for each in brokers)

"""Read one record again where it stands on its topic: the payload of a dead letter that was too large to have it."""

import asyncio
import re

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from carteiro.config import TicketSettings
from carteiro.tickets.errors import KafkaAway
from carteiro.tickets.kafka_client import client_options, records_of, said_by
from carteiro.tickets.ticket import Record

_PATIENCE_S = 10.0
_OPTIONS = {
    "auto.offset.reset": "error",  # another record is of no use
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "queued.max.messages.kbytes": "1024",
}
_PLACE = re.compile(r"([^|]+)\|([0-9]{1,9})\|([0-9]{1,18})")
_GONE = frozenset(
    {
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - so they are named
        KafkaError._PARTITION_EOF,  # noqa: SLF001 - as above
        KafkaError.OFFSET_OUT_OF_RANGE,
    }
)


async def fetched(settings: TicketSettings, place: str) -> Record | None:
    """The record at TOPIC|PARTITION|OFFSET; None if it is not there any more. `KafkaAway` if that is not known."""
    named = _PLACE.fullmatch(place)
    if named is None:
        return None
    topic, partition, offset = named.groups()
    wanted = TopicPartition(topic, int(partition), int(offset))
    record = await asyncio.to_thread(_read, settings, wanted)
    return record if record is not None and record.place == place else None


def _read(settings: TicketSettings, wanted: TopicPartition) -> Record | None:
    # A group must be named, but is never joined: nothing is subscribed to and nothing committed.
    consumer = Consumer({**client_options(settings), **_OPTIONS, "group.id": settings.group})
    try:
        return _read_by(consumer, wanted)
    except KafkaException as error:
        raise KafkaAway(f"A payload on {wanted.topic} cannot be read: {said_by(error)}") from None
    finally:
        consumer.close()


def _read_by(consumer: Consumer, wanted: TopicPartition) -> Record | None:
    # All topics are asked for: to ask for one by name makes it, at brokers that allow that.
    topic = consumer.list_topics(timeout=_PATIENCE_S).topics.get(wanted.topic)
    if topic is None or wanted.partition not in topic.partitions:
        return None
    consumer.assign([wanted])
    message = consumer.poll(_PATIENCE_S)
    if message is None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - so it is named
    error = message.error()
    if error is None:
        return records_of([message])[0]
    if error.code() in _GONE:
        return None
    raise KafkaException(error)

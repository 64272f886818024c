"""The dead letter topic: made if there is none, compared with ours if there is one, never changed."""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from carteiro.config import TicketSettings
from carteiro.observability import log
from carteiro.tickets import events
from carteiro.tickets.dead_letters.envelope import TOPIC_LIMIT
from carteiro.tickets.errors import KafkaAway
from carteiro.tickets.kafka_client import client_options, said_by

PARTITIONS, REPLICAS = 3, 3
TOPIC_SETTINGS: Mapping[str, str] = {
    "retention.ms": str(timedelta(days=30) // timedelta(milliseconds=1)),
    "compression.type": "snappy",
    "max.message.bytes": str(TOPIC_LIMIT),
}

_PATIENCE_S = 10.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0


async def ensure_dlq_topic(settings: TicketSettings) -> tuple[str, ...]:
    """Make the topic of dead letters if there is none; in what one that is there differs from ours.

    It is never changed: its owner may have reasons. `KafkaAway` if the brokers do not answer.
    """
    return await asyncio.to_thread(_ensure_dlq_topic, settings)


async def have_dlq_topic(settings: TicketSettings) -> None:
    """Make the topic of dead letters if there is none, as soon as the brokers answer."""
    pause = _FIRST_PAUSE_S
    while True:
        try:
            await ensure_dlq_topic(settings)
        except KafkaAway:
            pass  # those who read and write there say what they wait for
        except Exception as error:  # noqa: BLE001 - nobody awaits this: a bug of ours must be seen, and may pass
            log.unexpected("the topic of dead letters", error)
        else:
            return
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def _ensure_dlq_topic(settings: TicketSettings) -> tuple[str, ...]:
    admin = AdminClient({**client_options(settings)})
    topic = settings.dlq_topic
    try:
        differences = _made_or_compared(admin, topic)
    except KafkaException as error:
        text = f"The topic of dead letters {topic} cannot be looked at: {said_by(error)}"
        raise KafkaAway(text) from None
    if differences:
        events.dlq_topic_differs(topic, differences)
    return differences


def _made_or_compared(admin: AdminClient, topic: str) -> tuple[str, ...]:
    # All topics are asked for: to ask for one by name makes it, at brokers that allow that.
    cluster = admin.list_topics(timeout=_PATIENCE_S)
    if topic not in cluster.topics:
        replicas = min(REPLICAS, len(cluster.brokers))
        if _is_made(admin, topic, replicas):
            events.dlq_topic_created(topic, partitions=PARTITIONS, replicas=replicas)
            return ()
        cluster = admin.list_topics(timeout=_PATIENCE_S)
    return tuple(differences(admin, topic, cluster))


def _is_made(admin: AdminClient, topic: str, replicas: int) -> bool:
    """Make the topic; False if another was faster."""
    wanted = NewTopic(topic, PARTITIONS, replicas, config=dict(TOPIC_SETTINGS))
    [made] = admin.create_topics([wanted], request_timeout=_PATIENCE_S).values()
    try:
        made.result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise
    return True


def differences(admin: AdminClient, topic: str, cluster: Any) -> Iterator[str]:  # noqa: ANN401 - the library has no type for it
    """In what a topic of dead letters is not as we would have made it."""
    partitions = cluster.topics[topic].partitions
    if len(partitions) != PARTITIONS:
        yield f"it has {len(partitions)} partitions, not {PARTITIONS}"
    replicas = min((len(each.replicas) for each in partitions.values()), default=0)
    if replicas < min(REPLICAS, len(cluster.brokers)):
        yield f"it has {replicas} replicas, not {min(REPLICAS, len(cluster.brokers))}"
    found = topic_settings(admin, topic)
    for name, wanted in TOPIC_SETTINGS.items():
        if found[name] != wanted:
            yield f"{name} is {found[name]}, not {wanted}"


def topic_settings(admin: AdminClient, topic: str) -> dict[str, str]:
    """Return the settings of a topic, its own or its cluster's."""
    asked = admin.describe_configs(
        [ConfigResource(ResourceType.TOPIC, topic)], request_timeout=_PATIENCE_S
    )
    [described] = asked.values()
    return {name: each.value for name, each in described.result().items()}

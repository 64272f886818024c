"""How clients of Kafka are set up, and the topic of dead letters made.

What stands in ``tickets.kafka_file`` may be secret: no error ever shows a value from there, nor a name that
does not look like one.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from carteiro.config import TicketSettings
from carteiro.errors import CarteiroError, ConfigError
from carteiro.model import value
from carteiro.observability import log
from carteiro.tickets import events
from carteiro.tickets.dead_letters.envelope import TOPIC_LIMIT
from carteiro.tickets.scrubbing import scrub

PARTITIONS, REPLICAS = 3, 3
TOPIC_SETTINGS: Mapping[str, str] = {
    "retention.ms": str(timedelta(days=30) // timedelta(milliseconds=1)),
    "compression.type": "snappy",
    "max.message.bytes": str(TOPIC_LIMIT),
}

_PATIENCE_S = 10.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0
# What the lane rests on; another value would lose tickets, or another setting says it already.
_SET_BY_US = frozenset(
    {
        "acks",
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "group.id",
        "message.max.bytes",
        "metadata.broker.list",
        "request.required.acks",
        "transactional.id",
    }
)
_DEFAULTS = {
    "client.id": "carteiro",
    "log_level": "0",  # what it has to say we say, as lines of our log
    "reconnect.backoff.max.ms": "2000",  # a broker that is back is found soon
}
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[._][a-z0-9]+)*")
_SHORTEST_HIDDEN = 3


class KafkaAway(CarteiroError):
    """No broker answers, or none that may be asked this; try again."""


@value
class _Line:
    """A line of the file of properties, and where it stands."""

    number: int
    name: str
    said: str


def client_options(settings: TicketSettings) -> dict[str, str]:
    """What every client of the lane is given; what it needs beyond that goes on top. `ConfigError` if it is wrong."""
    own = {line.name: line.said for line in _lines(settings.kafka_file)}
    options = _DEFAULTS | own | {"bootstrap.servers": settings.bootstrap_servers}
    try:
        AdminClient(
            {**options}
        )  # the library knows which properties there are, and what they may be
    except KafkaException as error:
        raise refusal(settings, error) from None
    return options


def refusal(settings: TicketSettings, error: KafkaException) -> ConfigError:
    """What to raise, `from None`, when the library refuses to make a client: its own text may quote a secret."""
    lines, said = list(_lines(settings.kafka_file)), said_by(error)
    longest_first = sorted(lines, key=lambda line: len(line.name), reverse=True)
    wrong = next((line for line in longest_first if line.name in said), None)
    where = f", line {wrong.number} ({wrong.name})" if wrong else ""
    told = _without_values(said, lines)
    return ConfigError(f"tickets.kafka_file: {settings.kafka_file}{where}: {told}")


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


# --- the file of properties -------------------------------------------------------------------


def _lines(path: str) -> Iterator[_Line]:
    if not path:
        return
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"tickets.kafka_file: {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"tickets.kafka_file: {path}: is not a text in UTF-8") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield _line(path, number, line)


def _line(path: str, number: int, line: str) -> _Line:
    name, equals, said = (part.strip() for part in line.partition("="))
    where = f"tickets.kafka_file: {path}, line {number}"
    if not equals or not _NAME.fullmatch(name):
        raise ConfigError(f"{where}: must be NAME=VALUE, as librdkafka names its properties")
    if name in _SET_BY_US:
        raise ConfigError(f"{where}: {name} is not to be set here: the ticket lane sets it itself")
    return _Line(number, name, said)


def _without_values(said: str, lines: list[_Line]) -> str:
    values = {line.said for line in lines if len(line.said) >= _SHORTEST_HIDDEN}
    for each in sorted(values, key=len, reverse=True):
        said = said.replace(each, "***")
    return scrub(said)


# --- the topic --------------------------------------------------------------------------------


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
        if _code(error) == KafkaError.TOPIC_ALREADY_EXISTS:
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
    """What a topic is set to, itself or by its cluster."""
    asked = admin.describe_configs(
        [ConfigResource(ResourceType.TOPIC, topic)], request_timeout=_PATIENCE_S
    )
    [described] = asked.values()
    return {name: each.value for name, each in described.result().items()}


def _code(error: KafkaException) -> int:
    said = error.args[0] if error.args else None
    return said.code() if isinstance(said, KafkaError) else KafkaError.UNKNOWN


def said_by(error: KafkaException) -> str:
    """What the library says of it; that may be secret only where a client is made."""
    said = error.args[0] if error.args else None
    return said.str() if isinstance(said, KafkaError) else str(error)

"""Check the servers and topics of the ticket lane; nothing is changed."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from datetime import timedelta
from typing import Any, TypeAlias

import httpx
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from redis.exceptions import RedisError

from carteiro.config import TicketSettings
from carteiro.errors import ConfigError
from carteiro.model.checkup import Finding, Level
from carteiro.policy.masking import masked_servers
from carteiro.stores.redis.server import client_of, close, shown
from carteiro.stores.redis.server import said_by as redis_said
from carteiro.tickets.archive.document import Wanted
from carteiro.tickets.archive.mongo import MongoArchive
from carteiro.tickets.consume.counter import TIME_TO_LIVE_S
from carteiro.tickets.dead_letters.topic import differences, topic_settings
from carteiro.tickets.errors import ArchiveAway
from carteiro.tickets.kafka_client import client_options, said_by

_PATIENCE_S = 5.0
_DAY = timedelta(days=1)
_COUNTED_FOR = timedelta(seconds=TIME_TO_LIVE_S)
_FOR_EVER = -1

_Check: TypeAlias = Callable[[TicketSettings], Coroutine[Any, Any, list[Finding]]]


async def examine(settings: TicketSettings) -> list[Finding]:
    """Return the findings at Kafka, Redis, MongoDB and Alertmanager, as far as they are used."""
    checks: list[tuple[str, _Check]] = [
        ("tickets: Kafka", _kafka),
        ("tickets: Redis", _redis),
        ("tickets: MongoDB", _mongo),
        ("tickets: Alertmanager", _alertmanager),
    ]
    found = await asyncio.gather(*(_checked(name, check, settings) for name, check in checks))
    return [each for findings in found for each in findings]


async def _checked(name: str, check: _Check, settings: TicketSettings) -> list[Finding]:
    try:
        return await check(settings)
    except ConfigError as error:
        return [Finding(name, Level.FAIL, str(error), "correct it: the lane does not start so")]


def _found(check: str, told: str, advice: str = "") -> Finding:
    return Finding(f"tickets: {check}", Level.WARN if advice else Level.OK, told, advice)


async def _kafka(settings: TicketSettings) -> list[Finding]:
    return await asyncio.to_thread(lambda: list(_of_kafka(settings)))


def _of_kafka(settings: TicketSettings) -> Iterator[Finding]:
    admin = AdminClient({**client_options(settings)})
    servers = masked_servers(settings.bootstrap_servers)
    try:
        # All topics are asked for: to ask for one by name makes it, at brokers that allow that.
        cluster = admin.list_topics(timeout=_PATIENCE_S)
    except KafkaException as error:
        told = f"Kafka at {servers} does not answer: {said_by(error)}"
        yield _found("Kafka", told, "start it, or correct tickets.bootstrap_servers")
        return
    yield _found("Kafka", f"{servers}, brokers: {len(cluster.brokers)}")
    try:
        yield _of_topic(settings, admin, cluster)
        if settings.dlq_enabled:
            yield _of_dead_letters(settings, admin, cluster)
    except KafkaException as error:
        told = f"what the topics are set to cannot be read: {said_by(error)}"
        yield _found("topic", told, "allow the user DescribeConfigs on them")


def _of_topic(settings: TicketSettings, admin: AdminClient, cluster: Any) -> Finding:  # noqa: ANN401 - the library has no type for it
    topic = settings.topic
    if topic not in cluster.topics:
        advice = (
            f"make it, kafka-topics.sh --bootstrap-server {masked_servers(settings.bootstrap_servers)} --create "
            f"--topic {topic} --partitions 12, or correct tickets.topic"
        )
        return _found("topic", f"there is no topic {topic}", advice)
    kept_ms = int(topic_settings(admin, topic)["retention.ms"])
    if kept_ms == _FOR_EVER:
        return _found("topic", f"{topic} keeps its records for ever")
    kept = timedelta(milliseconds=kept_ms)
    told = f"{topic} keeps its records for {kept / _DAY:g} days"
    if kept < _COUNTED_FOR:
        advice = (
            f"raise its retention.ms to {_COUNTED_FOR // timedelta(milliseconds=1)}: failures are counted for "
            f"{_COUNTED_FOR / _DAY:g} days, and what waits for longer than the topic keeps it is lost"
        )
        return _found("topic", told, advice)
    return _found("topic", told)


def _of_dead_letters(settings: TicketSettings, admin: AdminClient, cluster: Any) -> Finding:  # noqa: ANN401 - as above
    topic = settings.dlq_topic
    if topic not in cluster.topics:
        told = f"{topic} is not there yet: a worker or an archive makes it"
        return _found("dead letters", told)
    if found := tuple(differences(admin, topic, cluster)):
        told = f"{topic} is not as it should be: {'; '.join(found)}"
        advice = "change the topic, unless that is meant: it is used as it stands"
        return _found("dead letters", told, advice)
    return _found("dead letters", f"{topic} is as it should be")


async def _redis(settings: TicketSettings) -> list[Finding]:
    if not settings.redis:
        return [_found("Redis", "not used: failures are counted in commits")]
    client, where = client_of(settings.redis, connections=1), shown(settings.redis)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await client.ping()
    except (RedisError, OSError) as error:
        told = f"Redis at {where} does not answer: {redis_said(error)}"
        advice = "start it, or correct tickets.redis; until then dead tickets cannot be republished"
        return [_found("Redis", told, advice)]
    finally:
        await close(client)
    return [_found("Redis", where)]


async def _mongo(settings: TicketSettings) -> list[Finding]:
    archive = MongoArchive(settings)
    try:
        waiting = await archive.count(Wanted(states=("dead",)))
    except ArchiveAway as error:
        advice = "start it, or correct tickets.mongo; dead letters stay on their topic meanwhile"
        return [_found("MongoDB", str(error), advice)]
    finally:
        await archive.close()
    return [_found("MongoDB", f"{archive.address}, dead tickets that wait: {waiting}")]


async def _alertmanager(settings: TicketSettings) -> list[Finding]:
    if not settings.alertmanager:
        return []
    url = settings.alertmanager.rstrip("/")
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=_PATIENCE_S) as client:
            (await client.get(f"{url}/api/v2/status")).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        told = f"Alertmanager at {url} does not answer: {str(error) or type(error).__name__}"
        advice = "start it, or correct tickets.alertmanager"
        return [_found("Alertmanager", told, advice)]
    return [_found("Alertmanager", url)]

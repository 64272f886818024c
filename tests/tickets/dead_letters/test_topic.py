"""The dead letter topic: made once, compared afterwards, and never changed."""

import asyncio
import io
from pathlib import Path
from uuid import uuid4

import pytest

from carteiro.observability import log
from carteiro.tickets.dead_letters import topic as module
from carteiro.tickets.dead_letters.topic import ensure_dlq_topic, have_dlq_topic
from carteiro.tickets.errors import KafkaAway
from support.deaths import settings_of
from support.kafka_server import Broker
from support.services import HOST, free_port
from support.shared_servers import shared_kafka

pytestmark = pytest.mark.servers


@pytest.fixture
def broker() -> Broker:
    """A real one: it is the one to say what a topic is."""
    return shared_kafka()


async def test_the_topic_is_made_as_the_seed_says(broker: Broker) -> None:
    """Three partitions, as many replicas as there are brokers, 30 days, snappy, 2 MiB."""
    settings = settings_of(
        bootstrap_servers=broker.bootstrap_servers, dlq_topic=f"dlq-{uuid4().hex}"
    )

    assert await ensure_dlq_topic(settings) == ()

    topic = broker.admin().list_topics(timeout=10).topics[settings.dlq_topic]
    assert len(topic.partitions) == 3
    assert (
        await ensure_dlq_topic(settings) == ()
    )  # its settings are looked at: they are as they should be


async def test_existing_topic_is_not_changed_and_differences_are_reported(
    broker: Broker,
) -> None:
    """Its owner may have reasons."""
    topic = broker.new_topic(partitions=1, settings={"retention.ms": "1000"})
    settings = settings_of(bootstrap_servers=broker.bootstrap_servers, dlq_topic=topic)

    differences = await ensure_dlq_topic(settings)

    assert "it has 1 partitions, not 3" in differences
    assert "retention.ms is 1000, not 2592000000" in differences
    assert any(each.startswith("max.message.bytes is ") for each in differences)
    assert await ensure_dlq_topic(settings) == differences


async def test_workers_that_start_together_make_it_once(broker: Broker) -> None:
    """All but one find it."""
    settings = settings_of(
        bootstrap_servers=broker.bootstrap_servers, dlq_topic=f"dlq-{uuid4().hex}"
    )

    results = await asyncio.gather(*(ensure_dlq_topic(settings) for _ in range(4)))

    assert results == [()] * 4


async def test_unreachable_brokers_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that starts tries again."""
    monkeypatch.setattr(module, "_PATIENCE_S", 0.2)

    with pytest.raises(KafkaAway, match="cannot be looked at"):
        await ensure_dlq_topic(settings_of(bootstrap_servers=f"{HOST}:{free_port()}"))


async def test_unexpected_error_is_reported_and_the_topic_still_made(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for the one who makes it: it must not end unseen."""
    monkeypatch.setattr(module, "_FIRST_PAUSE_S", 0.01)
    told = io.BytesIO()
    log.configure("error", told)
    file, topic = tmp_path / "kafka.properties", f"dlq-{uuid4().hex}"
    settings = settings_of(
        bootstrap_servers=broker.bootstrap_servers, dlq_topic=topic, kafka_file=str(file)
    )
    try:
        making = asyncio.create_task(have_dlq_topic(settings))
        async with asyncio.timeout(30):
            while b"cannot be read" not in told.getvalue():
                await asyncio.sleep(0.01)
        file.write_text("")
        await making
    finally:
        log.configure("off", io.BytesIO())

    assert b'"event":"unexpected"' in told.getvalue()
    assert topic in broker.admin().list_topics(timeout=10).topics

"""How clients of Kafka are set up: from settings and a file whose secrets are never shown; and the topic is made."""

import asyncio
import io
import traceback
from pathlib import Path
from uuid import uuid4

import pytest

from carteiro.errors import ConfigError
from carteiro.observability import log
from carteiro.tickets import kafka_client as module
from carteiro.tickets.kafka_client import (
    KafkaAway,
    client_options,
    ensure_dlq_topic,
    have_dlq_topic,
)
from support.deaths import settings_of
from support.kafka_server import Broker
from support.services import HOST, free_port
from support.shared_servers import shared_kafka

PASSWORD = f"pw-{uuid4().hex}"


def options_of(tmp_path: Path, text: str) -> dict[str, str]:
    """The options, with this file of properties."""
    file = tmp_path / "kafka.properties"
    file.write_text(text, "utf-8")
    return client_options(settings_of(kafka_file=str(file), bootstrap_servers="broker:9093"))


def test_without_a_file_the_brokers_are_enough() -> None:
    """The default is a cluster that asks for nothing."""
    options = client_options(settings_of(bootstrap_servers="one:9092,two:9092"))

    assert options["bootstrap.servers"] == "one:9092,two:9092"


def test_a_file_of_properties_is_read(tmp_path: Path) -> None:
    """Comments and blank lines, spaces around names and values, and = in a value."""
    text = f"# for the cluster\n\nsecurity.protocol = sasl_ssl\nsasl.password={PASSWORD}=x==\r\n"
    text += "sasl.mechanism=PLAIN\nsasl.username=me\nclient.id = mine\n"

    options = options_of(tmp_path, text)

    assert options["security.protocol"] == "sasl_ssl"
    assert options["sasl.password"] == f"{PASSWORD}=x=="
    assert options["client.id"] == "mine"
    assert options["bootstrap.servers"] == "broker:9093"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sasl.username=me\nPASSWORD\n", "line 2: must be NAME=VALUE"),
        ("PASSWORD==\n", "line 1: must be NAME=VALUE"),
        ("=PASSWORD\n", "line 1: must be NAME=VALUE"),
        ("no.such.thing=PASSWORD\n", "line 1 (no.such.thing)"),
        ("sasl.pass=PASSWORD\n", "line 1 (sasl.pass)"),
        ("security.protocol=PASSWORD\n", "line 1 (security.protocol)"),
        ("client.id=x\nsocket.timeout.ms=PASSWORD\n", "line 2 (socket.timeout.ms)"),
        ("security.protocol=ssl\nssl.key.pem=PASSWORD\nssl.key.password=PASSWORD\n", "ssl.key"),
        ("security.protocol=ssl\nssl.ca.location=/PASSWORD\n", "line 2 (ssl.ca.location)"),
        ("group.id=PASSWORD\n", "line 1: group.id is not to be set here"),
        ("acks=1\n", "line 1: acks is not to be set here"),
        ("enable.auto.commit=true\n", "line 1: enable.auto.commit is not to be set here"),
    ],
)
def test_a_wrong_line_is_told_without_what_it_says(tmp_path: Path, text: str, told: str) -> None:
    """The line and its name help; the value may be a secret, wherever it was put."""
    with pytest.raises(ConfigError) as error:
        options_of(tmp_path, text.replace("PASSWORD", PASSWORD))

    assert told in str(error.value)
    assert PASSWORD not in "".join(traceback.format_exception(error.value))


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """Before anything is connected to."""
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read"):
            client_options(settings_of(kafka_file=str(path)))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        client_options(settings_of(kafka_file=str(tmp_path / "binary")))


# --- the topic --------------------------------------------------------------------------------


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


async def test_a_topic_that_is_there_stays_as_it_is_and_differences_are_told(
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


async def test_brokers_that_are_away_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts tries again."""
    monkeypatch.setattr(module, "_PATIENCE_S", 0.2)

    with pytest.raises(KafkaAway, match="cannot be looked at"):
        await ensure_dlq_topic(settings_of(bootstrap_servers=f"{HOST}:{free_port()}"))


async def test_what_nobody_planned_for_is_told_and_the_topic_made_all_the_same(
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

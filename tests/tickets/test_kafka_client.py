"""Clients of Kafka are set up from settings and a file whose secrets are never shown."""

import traceback
from pathlib import Path
from uuid import uuid4

import pytest

from carteiro.errors import ConfigError
from carteiro.tickets.kafka_client import client_options
from support.deaths import settings_of

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
def test_wrong_line_is_reported_without_its_value(tmp_path: Path, text: str, told: str) -> None:
    """The line and its name help; the value may be a secret, wherever it was put."""
    with pytest.raises(ConfigError) as error:
        options_of(tmp_path, text.replace("PASSWORD", PASSWORD))

    assert told in str(error.value)
    assert PASSWORD not in "".join(traceback.format_exception(error.value))


def test_unreadable_file_is_reported(tmp_path: Path) -> None:
    """Before anything is connected to."""
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read"):
            client_options(settings_of(kafka_file=str(path)))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        client_options(settings_of(kafka_file=str(tmp_path / "binary")))

"""``carteiro doctor`` with a ticket lane: its servers and topics are checked, and nothing is created."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from carteiro.cli import app
from carteiro.tickets.dead_letters.topic import TOPIC_SETTINGS
from support.alertmanager_server import AlertmanagerServer
from support.kafka_server import Broker
from support.mongo_server import MongoServer
from support.redis_server import RedisServer
from support.services import HOST, free_port

pytestmark = pytest.mark.servers

DAY_MS = 86_400_000
Asked = Callable[..., dict[str, dict[str, Any]]]


@pytest.fixture
def lane(
    kafka: Broker,
    mongo: MongoServer,
    database: str,
    redis_server: RedisServer,
    alertmanager: AlertmanagerServer,
) -> dict[str, str]:
    """Settings of a lane whose servers are up; there is no topic."""
    name = f"tickets-{uuid4().hex}"
    return {
        "bootstrap_servers": kafka.bootstrap_servers,
        "topic": name,
        "dlq_topic": f"{name}.dlq",
        "redis": redis_server.url,
        "mongo": mongo.url,
        "mongo_database": database,
        "alertmanager": alertmanager.url,
    }


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Run it in a folder with only a settings file; the findings, by check."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CARTEIRO_STORE", raising=False)

    def ask(tickets: dict[str, str], more: str = "") -> dict[str, dict[str, Any]]:
        lines = [f'{name} = "{each}"' for name, each in tickets.items()]
        text = "\n".join([more, "[tickets]", *lines])
        (tmp_path / "carteiro.toml").write_text(text, "utf-8")
        ran = CliRunner().invoke(app, ["doctor", "--json"], catch_exceptions=False)
        found = [json.loads(line) for line in ran.stdout.splitlines()]
        assert ran.exit_code == any(each["level"] == "fail" for each in found)
        return {each["check"]: each for each in found}

    return ask


def _levels(found: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name.removeprefix("tickets: "): each["level"] for name, each in found.items()}


def test_folder_with_only_a_lane_has_no_store_check(
    asked: Asked, lane: dict[str, str], kafka: Broker, tmp_path: Path
) -> None:
    """Only the lane is checked; a missing topic of dead letters is created later."""
    kafka.create_topic(lane["topic"], partitions=1, settings={"retention.ms": str(7 * DAY_MS)})

    found = asked(lane)

    assert _levels(found) == dict.fromkeys(
        ("Kafka", "topic", "dead letters", "Redis", "MongoDB", "Alertmanager"), "ok"
    )
    assert "7 days" in found["tickets: topic"]["told"]
    assert [each.name for each in tmp_path.iterdir()] == ["carteiro.toml"]
    assert lane["dlq_topic"] not in kafka.admin().list_topics(timeout=10).topics


def test_store_is_checked_if_the_settings_need_one(asked: Asked, lane: dict[str, str]) -> None:
    """A missing store is reported, since e-mail needs one."""
    found = asked(lane, 'provider = "sandbox"')

    assert found["store"]["level"] == "fail"
    assert found["tickets: Kafka"]["level"] == "ok"


def test_store_is_checked_if_its_file_exists(
    asked: Asked, lane: dict[str, str], tmp_path: Path
) -> None:
    """With any settings."""
    (tmp_path / "carteiro.db").touch()

    assert "store" in asked(lane)


def test_lane_is_not_checked_without_ticket_settings(asked: Asked) -> None:
    """A Kafka that is not configured is not looked for."""
    found = asked({})

    assert found["store"]["level"] == "fail"
    assert not [name for name in found if name.startswith("tickets")]


@pytest.mark.parametrize(
    ("retention_ms", "level"),
    [(7 * DAY_MS, "ok"), (7 * DAY_MS - 1, "warn"), (DAY_MS, "warn"), (-1, "ok")],
)
def test_topic_retention_shorter_than_the_failure_count_is_a_warning(
    asked: Asked, lane: dict[str, str], kafka: Broker, retention_ms: int, level: str
) -> None:
    """It says what to set."""
    kafka.create_topic(lane["topic"], partitions=1, settings={"retention.ms": str(retention_ms)})

    found = asked(lane)["tickets: topic"]

    assert found["level"] == level
    assert ("604800000" in found["advice"]) is (level == "warn")


def test_missing_or_misconfigured_topic_is_reported(
    asked: Asked, lane: dict[str, str], kafka: Broker
) -> None:
    """With the command that creates it, or the differences."""
    short = dict(TOPIC_SETTINGS) | {"retention.ms": str(DAY_MS)}
    kafka.create_topic(lane["dlq_topic"], partitions=3, settings=short)

    found = asked(lane)

    assert _levels(found)["topic"] == _levels(found)["dead letters"] == "warn"
    assert f"--create --topic {lane['topic']}" in found["tickets: topic"]["advice"]
    assert f"retention.ms is {DAY_MS}" in found["tickets: dead letters"]["told"]


@pytest.mark.usefixtures("collected")
def test_each_unreachable_server_is_reported(asked: Asked) -> None:
    """As a warning: the lane waits and goes on by itself. Passwords are not shown."""
    nowhere = f"{HOST}:{free_port()}"
    found = asked(
        {
            "bootstrap_servers": nowhere,
            "redis": f"redis://me:hunter2@{nowhere}/0",
            "mongo": f"mongodb://me:hunter2@{nowhere}/?serverSelectionTimeoutMS=500",
            "alertmanager": f"http://{nowhere}",
        }
    )

    assert _levels(found) == dict.fromkeys(("Kafka", "Redis", "MongoDB", "Alertmanager"), "warn")
    assert all(nowhere in each["told"] for each in found.values())
    assert "hunter2" not in str(found)


def test_unusable_properties_are_a_failure(asked: Asked, lane: dict[str, str]) -> None:
    """The lane would not start."""
    found = asked(lane | {"kafka_file": "nowhere.properties"})

    assert found["tickets: Kafka"]["level"] == "fail"
    assert found["tickets: MongoDB"]["level"] == "ok"

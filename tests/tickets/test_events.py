"""Log lines of the lane: the names that people grep for, and no secret in any of them."""

import inspect
import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest

from carteiro.observability import log
from carteiro.tickets import events
from carteiro.tickets.ticket import Reason
from support.deaths import a_death


@pytest.fixture(autouse=True)
def _silent_again() -> Iterator[None]:
    """The log of a process is one: leave it as it was found."""
    yield
    log.configure("off")


def write_all() -> None:
    """One line of each event."""
    death = a_death(error="GET https://me:hunter22@api.example/", error_type="token=hunter22")
    events.dlq_published(death, topic="dlq", size_bytes=12)
    events.dlq_publish_refused(death, topic="dlq", size_bytes=12)
    events.dlq_publish_failed(death, "timed out", topic="dlq", error_type="TimeoutError")
    events.dlq_consumer_started(topic="dlq", group="worker-agents-dlq")
    events.dlq_consumer_waiting("MongoDB: password=hunter22", records=2)
    events.dlq_consumer_going_on("MongoDB")
    events.dlq_archived(3, new=2)
    events.dlq_not_understood(death.ticket.record, "TypeError")
    events.dlq_consumer_stopped()
    events.dlq_purged(1, by="ana", why="old", chosen={"taskType": "BUILD"}, ids=["ticket-1"])
    events.alertmanager_away("http://127.0.0.1:9093", "token=hunter22")
    events.alertmanager_back("http://127.0.0.1:9093")
    events.dlq_topic_created("dlq", partitions=3, replicas=1)
    events.dlq_topic_differs("dlq", ("retention.ms is 1, not 2",))
    events.redis_away("redis://127.0.0.1:6379/0", "password=hunter22 is wrong")
    events.redis_back("redis://127.0.0.1:6379/0")
    events.kafka_hangs(10.0)
    events.handlers_go_on("1 handlers go on")
    events.kafka_trouble("_TRANSPORT", "sasl.password=hunter22")
    events.tickets_waiting("Kafka: sasl.password=hunter22")
    events.tickets_going_on("Kafka: sasl.password=hunter22")
    why = {"type": "token=hunter22", "why": "https://me:hunter22@api.example/"}
    events.ticket_failed(death.ticket, failures=1, after=timedelta(seconds=1), **why)
    events.ticket_held(death)
    events.ticket_pause_began("BUILD", error_type="token=hunter22", why="token=hunter22")
    events.ticket_pause_given_up("BUILD")
    events.dlq_done_not_told(death.ticket)
    events.tickets_started(topic="tickets", group="workers", types=["BUILD"], dlq_topic="dlq")
    events.ticket_pause_ended("BUILD")
    events.partitions_assigned([("execution.tickets", 0)])
    events.partitions_revoked([("execution.tickets", 0)])
    events.partitions_lost([("execution.tickets", 0)])
    events.partition_began_again([("execution.tickets", 0)])


def lines(level: str) -> list[dict[str, Any]]:
    """Collect the lines of all events, at a level of the log."""
    stream = io.BytesIO()
    log.configure(level, stream)
    write_all()
    assert b"hunter22" not in stream.getvalue()
    return [orjson.loads(each) for each in stream.getvalue().splitlines()]


def test_each_function_writes_one_line_with_its_own_name() -> None:
    """One grep leads from a line to its function."""
    functions = {
        name
        for name, each in inspect.getmembers(events, inspect.isfunction)
        if each.__module__ == events.__name__ and not name.startswith("_")
    }

    assert {line["event"] for line in lines("debug")} == functions


def test_the_host_of_a_server_can_be_read() -> None:
    """Its password was taken out: the rest must not be masked once more as an address of a person."""
    [failed] = [line for line in lines("debug") if line["event"] == "ticket_failed"]

    assert failed["errorReason"] == "https://***@api.example/"


def test_lines_below_the_level_are_not_written() -> None:
    """A level is a floor."""
    assert {line["level"] for line in lines("error")} == {"error"}
    assert lines("off") == []


def test_a_dead_ticket_is_named_with_its_place_and_cause() -> None:
    """At three in the morning nobody wants to look for it."""
    [line] = [each for each in lines("info") if each["event"] == "dlq_published"]

    assert (line["ticketId"], line["taskType"], line["failures"]) == ("ticket-1", "BUILD", 3)
    assert (line["source"], line["reason"]) == ("execution.tickets|2|41", "max_retries_exceeded")


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("max_retries_exceeded", "fix what it failed of, then republish it"),
        ("permanent_error", "quarantine this one"),
        ("unknown_task_type", "deploy a handler"),
        ("undecodable", "it is not a ticket: quarantine it"),
    ],
)
def test_death_is_reported_with_a_remedy(reason: Reason, told: str) -> None:
    """To republish a record that is not a ticket helps nobody."""
    line = _published(reason, is_whole=True)

    assert told in line["message"]
    assert "oversized" not in line


def test_death_without_a_stored_payload_is_reported_as_such() -> None:
    """The reader has less time."""
    line = _published("max_retries_exceeded", is_whole=False)

    assert line["oversized"] is True
    assert "be quick" in line["message"]


def _published(reason: Reason, *, is_whole: bool) -> dict[str, Any]:
    stream = io.BytesIO()
    log.configure("info", stream)
    events.dlq_published(
        replace(a_death(), reason=reason), topic="dlq", size_bytes=12, is_whole=is_whole
    )
    return orjson.loads(stream.getvalue())  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("Kafka: Subscribed topic not available: tikcets", "correct tickets.topic"),
        ("Kafka: all brokers are down", "continues by itself"),
    ],
)
def test_mistyped_topic_is_not_an_outage(what: str, told: str) -> None:
    """Nobody else would ever make it."""
    stream = io.BytesIO()
    log.configure("info", stream)

    events.tickets_waiting(what)

    assert told in orjson.loads(stream.getvalue())["message"]

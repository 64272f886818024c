"""Reports of a waiting worker: that it waits, now and then what for, and that it goes on."""

import io
from collections.abc import Iterator

import orjson
import pytest

from carteiro.observability import log
from carteiro.tickets.consume.metrics import TicketMetrics
from carteiro.tickets.consume.watch import Watch


@pytest.fixture
def lines() -> Iterator[io.BytesIO]:
    """The log, from its beginning."""
    written = io.BytesIO()
    log.configure("info", written)
    yield written
    log.configure("off", io.BytesIO())


def told(written: io.BytesIO) -> list[tuple[str, str]]:
    """The events, each with what it is about."""
    found = map(orjson.loads, written.getvalue().splitlines())
    return [(each["event"], each.get("waitsFor") or each["waitedFor"]) for each in found]


def test_wait_is_logged_rarely_however_often_a_client_complains(lines: io.BytesIO) -> None:
    """Two texts about one trouble, in turns, are no news."""
    now = 0.0
    watch = Watch(TicketMetrics([]), clock=lambda: now)
    for _ in range(50):
        watch.waits("Kafka: refused")
        watch.waits("Kafka: disconnected (after 4 ms)")
    now = 31.0
    watch.waits("Kafka: refused")
    assert watch.waits_for == "Kafka: refused"
    watch.waits("")
    watch.waits("")

    assert told(lines) == [
        ("tickets_waiting", "Kafka: refused"),
        ("tickets_waiting", "Kafka: refused"),
        ("tickets_going_on", "Kafka: refused"),
    ]

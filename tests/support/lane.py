"""The ticket lane as processes: a worker and an archiver in a folder, with separate topics, group and database."""

import logging
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import httpx
import orjson
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from support.commands import environment_of_a_command
from support.kafka_server import Broker
from support.services import HOST, free_port
from support.shared_servers import shared_alertmanager, shared_kafka, shared_mongo, shared_redis

HOW_TO = "docs/how-to/run-the-ticket-lane.md"
RECOVER = "docs/runbooks/recover-dead-tickets.md"
NOT_REACHING = "docs/runbooks/tickets-not-reaching-the-dlq.md"
RUNBOOKS = (RECOVER, NOT_REACHING)

PAGES = {"worker": "http://127.0.0.1:8000", "archive": "http://127.0.0.1:8001"}  # as the docs say
PATIENCE_S = 60.0  # two processes start, join a group and wait for each other
_LOG = logging.getLogger(__name__)  # or the clients would write to stderr themselves
_SETTINGS = """
[tickets]
bootstrap_servers = "{kafka}"
topic = "{topic}"
dlq_topic = "{topic}.dlq"
group = "{topic}"
redis = "{redis}"
mongo = "{mongo}"
mongo_database = "{database}"
alertmanager = "{alertmanager}"
commit_every_ms = 20
"""


class Lane:
    """The lane of a test; ``folder`` has its settings, its handlers and the logs of its processes."""

    def __init__(self, folder: Path, kafka: Broker, topic: str) -> None:
        self.folder = folder
        self.topic = topic
        self._kafka = kafka
        self._ports = {name: free_port() for name in PAGES}
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap_servers}, logger=_LOG)

    @property
    def places(self) -> Mapping[str, str]:
        """Names of servers and topics in the docs, and in this test."""
        pages = {page: self.page_of(name) for name, page in PAGES.items()}
        here = self._kafka.bootstrap_servers
        return pages | {"127.0.0.1:9092": here, "execution.tickets": self.topic}

    def page_of(self, name: str) -> str:
        """The metrics page of a process."""
        return f"http://{HOST}:{self._ports[name]}"

    def put(self, *tickets: Mapping[str, Any] | bytes) -> None:
        """Write tickets, or any bytes, to the topic."""
        for each in tickets:
            body = each if isinstance(each, bytes) else orjson.dumps(each)
            self._producer.produce(self.topic, body)
        assert self._producer.flush(PATIENCE_S) == 0

    @contextmanager
    def worker(self, *arguments: str) -> Iterator[None]:
        """A worker, with its log in `worker.log`."""
        with self._running("worker", "run", *arguments):
            yield

    @contextmanager
    def archive(self) -> Iterator[None]:
        """An archiver, with its log in `archive.log`."""
        with self._running("archive", "archive"):
            yield

    @contextmanager
    def _running(self, name: str, *command: str) -> Iterator[None]:
        settings = {
            "CARTEIRO_TICKETS_METRICS_HOST": HOST,
            "CARTEIRO_TICKETS_METRICS_PORT": str(self._ports[name]),
        }
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "carteiro.cli", "tickets", *command],
                cwd=self.folder,
                env=environment_of_a_command(**settings),
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        try:
            yield
            process.terminate()
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
            process.wait()

    def until_settled(self) -> None:
        """Wait until all tickets have ended, and all dead ones are archived."""
        for topic, group in (
            (self.topic, self.topic),
            (f"{self.topic}.dlq", f"{self.topic}-dlq"),
        ):
            self._until_committed(topic, group)

    def until_said(self, name: str, pattern: str) -> None:
        """Wait until the page of a process has this text."""
        until = monotonic() + PATIENCE_S
        while not re.search(pattern, self._figures(name)):
            assert monotonic() < until, self._figures(name)
            sleep(0.05)

    def _figures(self, name: str) -> str:
        try:
            return httpx.get(f"{self.page_of(name)}/metrics").text
        except httpx.TransportError:
            return ""

    def _until_committed(self, topic: str, group: str) -> None:
        until = monotonic() + PATIENCE_S
        options = {"bootstrap.servers": self._kafka.bootstrap_servers, "group.id": group}
        consumer = Consumer(options, logger=_LOG)
        try:
            while not _has_committed_all(consumer, topic):
                assert monotonic() < until, f"{topic} is not worked off"
                sleep(0.05)
        finally:
            consumer.close()


def _has_committed_all(consumer: Consumer, topic: str) -> bool:
    try:
        return _is_committed(consumer, topic)
    except KafkaException:  # a new topic has no leader yet
        return False


def _is_committed(consumer: Consumer, topic: str) -> bool:
    partitions = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
    if not partitions:
        return False
    committed = consumer.committed(
        [TopicPartition(topic, each) for each in partitions], timeout=PATIENCE_S
    )
    for each in committed:
        first, end = consumer.get_watermark_offsets(each, timeout=PATIENCE_S)
        if max(each.offset, first) < end:
            return False
    return True


@contextmanager
def a_lane(folder: Path, *, dlq_settings: Mapping[str, str] | None = None) -> Iterator[Lane]:
    """An empty lane with its settings in this folder; ``dlq_settings`` creates the DLQ topic."""
    kafka, mongo = shared_kafka(), shared_mongo()
    topic = f"tickets-{uuid4().hex}"
    kafka.create_topic(topic, partitions=2)
    if dlq_settings is not None:
        kafka.create_topic(f"{topic}.dlq", partitions=3, settings=dlq_settings)
    with ExitStack() as stack:
        written = _SETTINGS.format(
            kafka=kafka.bootstrap_servers,
            topic=topic,
            redis=shared_redis().url,
            mongo=mongo.url,
            database=stack.enter_context(mongo.a_database()),
            alertmanager=shared_alertmanager().url,
        )
        (folder / "carteiro.toml").write_text(written, "utf-8")
        yield Lane(folder, kafka, topic)

"""A topic of tickets at a real broker, with its own group: its records, and its commits."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import orjson
from confluent_kafka import Consumer, Producer, TopicPartition

from carteiro.tickets.consume.notes import Noted, read_notes
from support.kafka_server import Broker
from support.services import PATIENCE
from support.topics import records_of

Headers: TypeAlias = Sequence[tuple[str, bytes]]

# A group of tests: changes are noticed, and members missed, within a moment.
QUICK = {"heartbeat.interval.ms": "100", "session.timeout.ms": "6000"}
_LARGEST = 16 * 1024 * 1024
_LOG = logging.getLogger(__name__)  # or the clients would write to stderr themselves


class TicketTopic:
    """A topic that one test has, and the group that reads it."""

    def __init__(self, broker: Broker, *, partitions: int = 1) -> None:
        self.broker = broker
        self.partitions = partitions
        self.name = broker.new_topic(
            partitions=partitions, settings={"max.message.bytes": str(_LARGEST)}
        )
        self.group = f"group of {self.name}"
        self.dlq = f"{self.name}.dlq"
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "message.max.bytes": _LARGEST,
                "linger.ms": 0,
                "log_level": 0,
            },
            logger=_LOG,
        )

    @property
    def options(self) -> dict[str, object]:
        """The options of its clients."""
        return {"bootstrap.servers": self.broker.bootstrap_servers, "log_level": "0", **QUICK}

    def put(self, *tickets: dict[str, Any], partition: int = 0, headers: Headers = ()) -> None:
        """Write tickets at the end of a partition, each with its id for a key, or its ``key``."""
        for fields in tickets:
            key = fields.get("key", fields["ticket_id"])
            body = orjson.dumps({"task_type": "BUILD"} | fields)
            self._write(key.encode(), body, partition, headers)
        self._have_written()

    def put_bytes(
        self, *values: bytes | None, key: bytes | None = None, partition: int = 0
    ) -> None:
        """Write any bytes."""
        for each in values:
            self._write(key, each, partition)
        self._have_written()

    def committed(self) -> list[int]:
        """The committed offset of each partition; -1001 where nothing was ever committed."""
        return [each.offset for each in self._committed()]

    def notes(self) -> list[Noted | None]:
        """The notes of the last commit of each partition."""
        return [read_notes(each.metadata or "") for each in self._committed()]

    def dead(self) -> list[Any]:
        """All records of its topic of dead letters."""
        return records_of(self.broker.bootstrap_servers, self.dlq)

    async def until_committed(self, *offsets: int) -> None:
        """Wait until the partitions are committed up to there."""
        await until(lambda: self.committed() == [*offsets], every_s=0.05)

    def _write(
        self, key: bytes | None, value: bytes | None, partition: int, headers: Headers = ()
    ) -> None:
        self._producer.produce(self.name, value, key, partition, headers=list(headers))

    def _have_written(self) -> None:
        assert self._producer.flush(PATIENCE) == 0, "the broker does not take what is put"

    def _committed(self) -> list[TopicPartition]:
        client = Consumer(
            {"bootstrap.servers": self.broker.bootstrap_servers, "group.id": self.group},
            logger=_LOG,
        )
        try:
            parts = [TopicPartition(self.name, each) for each in range(self.partitions)]
            return client.committed(parts, timeout=PATIENCE)
        finally:
            client.close()


async def until(holds: Callable[[], bool], *, every_s: float = 0.005) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "what is waited for does not come"
        await asyncio.sleep(every_s)

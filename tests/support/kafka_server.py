"""A real Kafka broker, run by the tests: one node, durable when its process is killed."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from support.pages import REPOSITORY
from support.services import HOST, PATIENCE, Service, a_folder, free_port, is_listening, made

_COMMAND = REPOSITORY / "tools/kafka/broker"
_LOG = logging.getLogger(__name__)  # or a client would log to stderr while the broker is down


class Broker:
    """A broker that listens on a port, started by this or another process."""

    def __init__(self, port: int) -> None:
        self.port = port

    @property
    def bootstrap_servers(self) -> str:
        """Its address for clients."""
        return f"{HOST}:{self.port}"

    def admin(self) -> AdminClient:
        """A client that may do everything; it ends with its last user."""
        return AdminClient({"bootstrap.servers": self.bootstrap_servers}, logger=_LOG)

    def is_ready(self) -> bool:
        """True if groups can start: a client that asks too early retries only after seconds."""
        if not is_listening(self.port):
            return False
        # Not by an AdminClient: librdkafka 2.16 crashes when it asks for offsets that are
        # not loaded yet.
        nobody = Consumer(
            {"bootstrap.servers": self.bootstrap_servers, "group.id": "nobody"}, logger=_LOG
        )
        try:
            nobody.committed([TopicPartition("nothing", 0)], timeout=0.25)
        except KafkaException:
            return False
        finally:
            nobody.close()
        return True

    def create_topic(
        self, name: str, *, partitions: int = 1, settings: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic; an existing name is refused."""
        admin = self.admin()  # held until the topic is there
        topic = NewTopic(name, partitions, config=dict(settings or {}))
        [created] = admin.create_topics([topic]).values()
        created.result(PATIENCE)

    def change_topic(self, name: str, settings: Mapping[str, str]) -> None:
        """Change the settings of a topic."""
        admin = self.admin()
        entries = [
            ConfigEntry(each, said, incremental_operation=AlterConfigOpType.SET)
            for each, said in settings.items()
        ]
        topic = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        [changed] = admin.incremental_alter_configs([topic]).values()
        changed.result(PATIENCE)

    def new_topic(self, *, partitions: int = 1, settings: Mapping[str, str] | None = None) -> str:
        """A unique name for a topic: tests share a broker, so its groups need such names, too."""
        name = f"topic-{uuid4().hex}"
        self.create_topic(name, partitions=partitions, settings=settings)
        return name


class KafkaServer(Service, Broker):
    """The broker that a test starts, and may stop and kill."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._controller_port = free_port()

    def command(self) -> list[str]:
        """The broker in the foreground."""
        return [str(_COMMAND), str(self.folder), str(self.port), str(self._controller_port)]

    def is_ready(self) -> bool:
        """True if it takes records."""
        return Broker.is_ready(self)


@contextmanager
def a_kafka() -> Iterator[KafkaServer]:
    """A running broker; without the program the tests are skipped, in CI they fail."""
    made("kafka/made_from")
    with a_folder("kafka", ours=True) as folder:
        server = KafkaServer(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()

"""A ticket lane with real processes: its tickets, its workers, and their results."""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import redis

from carteiro.tickets.dead_letters.envelope import DeadTicket, opened
from end_to_end.tickets.points import Plan
from end_to_end.tickets.process import run_worker
from support.commands import environment_of_a_command
from support.forks import forks
from support.services import PATIENCE
from support.ticket_topic import QUICK, TicketTopic

_POLL_S = 0.05
_NO_SUCH_KEY = -2


@dataclass(frozen=True)
class Expected:
    """The expected end of a ticket, and its number of executions without a kill."""

    dead: bool
    executions: int


class Lane:
    """A topic, its failure counts, and a folder with the marks and the log of the workers."""

    def __init__(self, topic: TicketTopic, redis_url: str, folder: Path) -> None:
        self.topic = topic
        self.redis_url = redis_url
        self.folder = folder
        self.metrics_port = 0
        self.expected: dict[str, Expected] = {}
        self.put_in = [0] * topic.partitions

    # --- tickets ---

    def put(self, name: str, *, partition: int = 0, dead: bool = False, **fields: Any) -> None:
        """A ticket that ends well after its failures, or dies of them."""
        fails = fields.get("fails", 0)
        executions = 1 if fields.get("permanent") else min(fails + (not dead), 3)
        self._expect(f"{name}.{self.topic.name}", partition, Expected(dead, executions))
        self.topic.put({"ticket_id": f"{name}.{self.topic.name}", **fields}, partition=partition)

    def put_some_of_each(self, name: str = "") -> None:
        """One of every kind."""
        self.put(f"{name}good")
        self.put(f"{name}recovers", fails=2)
        self.put(f"{name}doomed", fails=9, dead=True)
        self.put(f"{name}hopeless", permanent=True, dead=True)
        self.put_garbage(b"\xffno ticket")
        self.put(f"{name}last")

    def put_garbage(self, value: bytes | None, partition: int = 0) -> None:
        """Bytes that are not a ticket: they die without an execution, under a name made from their position."""
        made = f"poison:{self.topic.name}:{partition}:{self.put_in[partition]}"
        self._expect(made, partition, Expected(dead=True, executions=0))
        self.topic.put_bytes(value, partition=partition)

    def _expect(self, id: str, partition: int, what: Expected) -> None:
        self.expected[id] = what
        self.put_in[partition] += 1

    # --- workers ---

    @contextmanager
    def working(self, plan: Plan | None = None, **options: str) -> Iterator[ForkServerProcess]:
        """A worker that does not outlive the block; ``options`` are those of its Kafka clients."""
        process = self.start(plan, **options)
        try:
            yield process
        finally:
            process.kill()
            process.join(PATIENCE)

    def start(self, plan: Plan | None = None, **options: str) -> ForkServerProcess:
        """A worker."""
        process = forks().Process(
            target=run_worker, args=(str(self.log), self._environment(plan, options))
        )
        process.start()
        return process

    def _environment(self, plan: Plan | None, options: Mapping[str, str]) -> dict[str, str]:
        properties = self.folder / f"kafka-{'-'.join(options.values())}.properties"
        named = {name.replace("_", "."): value for name, value in options.items()}
        lines = (f"{name}={value}\n" for name, value in (QUICK | named).items())
        properties.write_text("".join(lines), "utf-8")
        settings = {
            "BOOTSTRAP_SERVERS": self.topic.broker.bootstrap_servers,
            "KAFKA_FILE": str(properties),
            "TOPIC": self.topic.name,
            "GROUP": self.topic.group,
            "DLQ_TOPIC": self.topic.dlq,
            "REDIS": self.redis_url,
            "COMMIT_EVERY_MS": "20",
            "DRAIN_MS": "2000",
            "METRICS_HOST": "127.0.0.1",
            "METRICS_PORT": str(self.metrics_port),
        }
        return environment_of_a_command(
            **{f"CARTEIRO_TICKETS_{name}": each for name, each in settings.items()},
            TICKET_MARKS=str(self.marks),
            TICKET_PLAN=str(plan or ""),
        )

    def wait_for_rest(self) -> None:
        """Wait until all records are committed."""
        deadline = time.monotonic() + 2 * PATIENCE
        while (committed := self.topic.committed()) != self.put_in:
            assert time.monotonic() < deadline, f"committed is {committed} of {self.put_in}"
            time.sleep(_POLL_S)

    # --- results ---

    @property
    def marks(self) -> Path:
        """The file with the marks of executions."""
        return self.folder / "marks"

    @property
    def log(self) -> Path:
        """The log of the workers."""
        return self.folder / "log"

    def executions(self) -> Mapping[str, int]:
        """Number of executions of each ticket."""
        return Counter(each["id"] for each in self._marks() if each["what"] == "began")

    def done(self) -> set[str]:
        """Tickets whose handler has succeeded."""
        return {each["id"] for each in self._marks() if each["what"] == "done"}

    def dead(self) -> Mapping[str, list[DeadTicket]]:
        """The dead letters of each ticket."""
        found = defaultdict(list)
        for each in self.topic.dead():
            letter = opened(each)
            found[letter.id].append(letter)
        return found

    def counters(self) -> dict[str, int]:
        """The remaining failure counts of these tickets, with their seconds to live; -1: for ever."""
        keys = [f"ticket:retry_count:{id}" for id in self.expected]
        with redis.Redis.from_url(self.redis_url, decode_responses=True) as client:
            return {key: left for key in keys if (left := client.ttl(key)) != _NO_SUCH_KEY}

    def let_all_be_looked_at(self) -> None:
        """As if one of the last records had failed before."""
        with redis.Redis.from_url(self.redis_url) as client:
            for number in range(self.topic.partitions):
                client.set(f"ticket:counted_up_to:{self.topic.name}|{number}", 1000, ex=3600)

    def _marks(self) -> list[dict[str, Any]]:
        with suppress(FileNotFoundError):
            return [json.loads(line) for line in self.marks.read_bytes().splitlines()]
        return []


def broken(lane: Lane, disturbances: int) -> list[str]:
    """The faults of a lane at rest, if this many processes were killed or stopped there."""
    executions, done, dead = lane.executions(), lane.done(), lane.dead()
    faults = [f"nobody put {id}" for id in {*executions, *dead} - {*lane.expected}]
    for id, what in lane.expected.items():
        ended = (id in done, id in dead)
        if ended != (not what.dead, what.dead):
            faults.append(f"{id}: done, dead: {ended}")
        if not what.executions <= executions.get(id, 0) <= what.executions + disturbances:
            faults.append(f"{id}: executed {executions.get(id, 0)} times, not {what.executions}")
        faults += _faults_of_letters(id, what, dead.get(id, []), disturbances)
    return [
        *faults,
        *(f"kept for ever: {key}" for key, left in lane.counters().items() if left < 0),
    ]


def _faults_of_letters(
    id: str, what: Expected, letters: list[DeadTicket], disturbances: int
) -> Iterator[str]:
    if len({each.dlq_id for each in letters}) > 1:
        yield f"{id}: more than one dlq_id"
    most = what.executions + disturbances
    for failures in (each.metadata["retry_count"] for each in letters):
        if not what.executions <= failures <= most:
            yield f"{id}: it died after {failures} failures"

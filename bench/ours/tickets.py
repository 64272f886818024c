"""A worker of the ticket lane on a topic of its own: from the first record to the last commit.

The clock starts with the first handler and ends when all that can be committed is.
"""

import argparse
import asyncio
import os
import random
from uuid import uuid4

import orjson
import uvloop
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from carteiro.cli.process import tune
from carteiro.config import TicketSettings, load
from carteiro.tickets import Ticket, Tickets
from carteiro.tickets.consume.worker import TicketWorker
from figures import Figure, measured, report
from watched import watched

LONGEST_MS = 5.0
_PATIENCE_S = 30.0


def new_topic_name() -> str:
    """Another each time."""
    return f"bench-{uuid4().hex}"


def new_topic(servers: str) -> str:
    """A topic that nobody has, with one partition."""
    name = new_topic_name()
    admin = AdminClient({"bootstrap.servers": servers})
    [made] = admin.create_topics([NewTopic(name, 1)]).values()
    made.result(_PATIENCE_S)
    return name


def id_of(topic: str, each: int) -> str:
    """A ticket id that no other run uses: failures are counted by it, and all runs share one Redis."""
    return f"{topic}-{each}"


def fill(servers: str, topic: str, tickets: int, *, keys: int, failing: float) -> int:
    """Write tickets, of which some always fail; how many those are."""
    options = {
        "bootstrap.servers": servers,
        "linger.ms": 50,
        "queue.buffering.max.messages": 1_000_000,
    }
    producer = Producer(options)
    dice = random.Random(1)
    failed = 0
    for each in range(tickets):
        fails = dice.random() < failing
        failed += fails
        body = {
            "ticket_id": id_of(topic, each),
            "task_type": "BUILD",
            "status": "PENDING",
            "parameters": {"ms": dice.uniform(0, LONGEST_MS), "fails": fails},
        }
        key = f"key-{each % keys}" if keys else id_of(topic, each)
        producer.produce(topic, orjson.dumps(body), key=key, on_delivery=_taken)
    with watched("filling", lambda: len(producer)):
        producer.flush()
    return failed


def _taken(error: KafkaError | None, _: Message) -> None:
    if error is not None:
        raise KafkaException(error)


class Handling:
    """The handler, and how far it is."""

    def __init__(self, *, sleeps: bool = False, may_fail: bool = False) -> None:
        self.began = asyncio.Event()
        self.done = 0
        self.tickets = Tickets()
        fast = self._fail if may_fail else self._nothing
        self.tickets.handler("BUILD")(self._sleep if sleeps else fast)

    async def _sleep(self, ticket: Ticket) -> None:
        self.began.set()
        await asyncio.sleep(ticket.fields["parameters"]["ms"] / 1000)
        self.done += 1

    async def _nothing(self, _: Ticket) -> None:
        if not self.done:
            self.began.set()
        self.done += 1

    async def _fail(self, ticket: Ticket) -> None:
        if not self.done:
            self.began.set()
        if ticket.fields["parameters"]["fails"]:
            raise ConnectionError("it always fails")
        self.done += 1


def backlog(worker: TicketWorker) -> int:
    """Count the records that it has read and not committed."""
    partitions = worker._runner._partitions.values()  # noqa: SLF001 - nobody else needs it
    return sum(
        (each.offsets.end or 0) - (each.committed[0] if each.committed else each.offsets.start or 0)
        for each in partitions
    )


async def run(settings: TicketSettings, handling: Handling, healthy: int, name: str) -> Figure:
    """Work until all healthy ones are done, and committed if none is to fail."""
    worker = TicketWorker(settings, handling.tickets, urls={})
    running = asyncio.create_task(worker.run())
    with watched("the first ticket", handling.began.is_set):
        beginning = asyncio.create_task(handling.began.wait())
        await asyncio.wait({beginning, running}, return_when=asyncio.FIRST_COMPLETED)
        beginning.cancel()
    with measured(name, healthy, lambda: (handling.done, backlog(worker))) as figure:
        while handling.done < healthy or (backlog(worker) and name != "failing"):
            if running.done():
                running.result()
                raise RuntimeError("the worker ended before its work")
            await asyncio.sleep(0.005)
    worker.stop_now()
    await running
    return figure


def settings_of(topic: str) -> TicketSettings:
    """The settings of a worker; the servers stand in the environment."""
    overrides = {
        "tickets.bootstrap_servers": os.environ["BENCH_KAFKA"],
        "tickets.redis": os.environ["BENCH_REDIS"],
        "tickets.topic": topic,
        "tickets.dlq_topic": f"{topic}.dlq",
        "tickets.group": topic,
        "tickets.concurrency": 100,
    }
    return load(environ={}, overrides=overrides).tickets


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tickets", type=int, default=10_000)
    parser.add_argument("--keys", type=int, default=0, help="0: each has its own")
    parser.add_argument(
        "--failing", type=float, help="the share that always fails; 0: none does, though it could"
    )
    parser.add_argument("--sleeps", action="store_true", help="0 to 5 ms each")
    asked = parser.parse_args()
    topic = new_topic(os.environ["BENCH_KAFKA"])
    share = asked.failing or 0.0
    failed = fill(os.environ["BENCH_KAFKA"], topic, asked.tickets, keys=asked.keys, failing=share)
    tune()

    async def measure() -> Figure:
        handling = Handling(sleeps=asked.sleeps, may_fail=asked.failing is not None)
        name = "failing" if asked.failing else "tickets"
        return await run(settings_of(topic), handling, asked.tickets - failed, name)

    report(uvloop.run(measure()))


if __name__ == "__main__":
    main()

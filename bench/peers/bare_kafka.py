"""The least that any consumer of tickets does: records in batches, their JSON, one awaited no-op each."""

import argparse
import os

import orjson
import uvloop
from confluent_kafka import Consumer, Message

from carteiro.cli.process import tune
from figures import Figure, measured, report
from ours.tickets import fill, new_topic
from watched import watched

_AT_ONCE = 500


async def nothing(_: object) -> None:
    """The work for one ticket."""


async def consume(consumer: Consumer, tickets: int) -> Figure:
    """From the first record to the commit of the last."""
    messages: list[Message] = []
    with watched("the first record", lambda: len(messages)):
        while not messages:
            messages = consumer.consume(_AT_ONCE, 0.05)
    seen = 0
    with measured("bare", tickets, lambda: seen) as figure:
        while True:
            for message in messages:
                await nothing(orjson.loads(message.value() or b""))
            seen += len(messages)
            if seen >= tickets:
                break
            messages = consumer.consume(_AT_ONCE, 1.0)
        consumer.commit(asynchronous=False)
    return figure


def main() -> None:
    """Measure it on a topic of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tickets", type=int, default=100_000)
    asked = parser.parse_args()
    servers = os.environ["BENCH_KAFKA"]
    topic = new_topic(servers)
    fill(servers, topic, asked.tickets, keys=0, failing=0.0)
    options = {
        "bootstrap.servers": servers,
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(options)
    consumer.subscribe([topic])
    tune()
    report(uvloop.run(consume(consumer, asked.tickets)))
    consumer.close()


if __name__ == "__main__":
    main()

"""taskiq on a Redis stream: enqueue with 50 calls at once, it has no lists; then drain with 100 jobs at once.

No tenants.
"""

import argparse
import asyncio
import os

import uvloop
from redis.asyncio import Redis
from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

from figures import measured, report

_AT_ONCE = 50
_BODY = "x" * 989
_LOOK_EVERY_S = 0.01


async def _measure(jobs: int) -> None:
    url, left, begun = os.environ["BENCH_QUEUE"], jobs, asyncio.Event()

    async def no_op(body: str) -> None:  # noqa: ARG001 - it is handed over, that is all
        nonlocal left
        left -= 1
        if not left:
            begun.set()

    broker = RedisStreamBroker(url=url, consumer_id="0")
    task = broker.task("no_op")(no_op)
    await broker.startup()
    with measured("enqueue", jobs) as enqueued:
        for _ in range(0, jobs, _AT_ONCE):
            await asyncio.gather(*[task.kiq(_BODY) for _ in range(_AT_ONCE)])
    report(enqueued)
    with measured("drain", jobs, lambda: left) as drained:
        receiving = asyncio.create_task(run_receiver_task(broker, max_async_tasks=100))
        await begun.wait()
        await _acknowledged(url)
    report(drained)
    receiving.cancel()
    await asyncio.gather(receiving, return_exceptions=True)
    await broker.shutdown()


async def _acknowledged(url: str) -> None:
    async with Redis.from_url(url) as redis:
        while (await redis.xpending("taskiq", "taskiq"))["pending"]:
            await asyncio.sleep(_LOOK_EVERY_S)


def main() -> None:
    """Fill an empty server, then drain it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    uvloop.run(_measure(parser.parse_args().jobs))


if __name__ == "__main__":
    main()

"""PgQueuer: pick-up at 100 a second, its worker in the same process."""

import argparse
import asyncio
import os
import time

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from pace import at_pace, print_pick_up

_BATCH = 10


async def _measure(count: int) -> None:
    working, sending = [await asyncpg.connect(os.environ["BENCH_STORE"]) for _ in range(2)]
    await Queries(AsyncpgDriver(working)).install()
    queries = Queries(AsyncpgDriver(sending))
    manager = QueueManager(Queries(AsyncpgDriver(working)))
    started: dict[int, float] = {}
    turn = asyncio.Lock()  # a connection takes one statement at a time

    async def tick(job: Job) -> None:
        assert job.payload is not None
        started[int(job.payload)] = time.perf_counter()

    async def one(number: int) -> None:
        async with turn:
            await queries.enqueue("tick", b"%d" % number)

    manager.entrypoint("tick")(tick)
    worker = asyncio.create_task(manager.run(batch_size=_BATCH))
    sent = await at_pace(one, started, count)
    manager.shutdown.set()
    await worker
    print_pick_up(sent, started)


def main() -> None:
    """Measure on a new database."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(_measure(parser.parse_args().count))


if __name__ == "__main__":
    main()

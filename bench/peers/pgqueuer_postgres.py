"""PgQueuer: enqueue in lists of 1,000, then drain in batches of 250.

No tenants. It writes a log row for each job that it finishes.
"""

import argparse
import asyncio
import os

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

from figures import measured, report

_LIST = 1000
_BATCH = 250
_PAYLOAD = b'{"body": "%b"}' % (b"x" * 989)  # 1,001 bytes


async def _measure(jobs: int) -> None:
    connection = await asyncpg.connect(os.environ["BENCH_STORE"])
    driver = AsyncpgDriver(connection)
    queries = Queries(driver)
    await queries.install()
    with measured("enqueue", jobs) as enqueued:
        for _ in range(0, jobs, _LIST):
            await queries.enqueue(["no_op"] * _LIST, [_PAYLOAD] * _LIST, [0] * _LIST)
    report(enqueued)

    manager, handled = QueueManager(queries), 0

    async def no_op(job: Job) -> None:  # noqa: ARG001 - it is handed over, that is all
        nonlocal handled
        handled += 1

    manager.entrypoint("no_op")(no_op)
    with measured("drain", jobs, lambda: handled) as drained:
        await manager.run(batch_size=_BATCH, mode=QueueExecutionMode.drain)
    assert handled == jobs
    report(drained)


def main() -> None:
    """Fill a new database, then drain it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(_measure(parser.parse_args().jobs))


if __name__ == "__main__":
    main()

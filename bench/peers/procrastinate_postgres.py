"""Procrastinate: enqueue in lists of 1,000, then drain with 50 jobs at once; finished ones are deleted.

No tenants.
"""

import argparse
import os

import uvloop
from procrastinate import App, PsycopgConnector

from figures import measured, report

_LIST = 1000
_AT_ONCE = 50
_CALL = {"body": "x" * 989}  # 1,001 bytes of JSON


async def _measure(jobs: int) -> None:
    handled = 0

    async def no_op(body: str) -> None:  # noqa: ARG001 - it is handed over, that is all
        nonlocal handled
        handled += 1

    app = App(connector=PsycopgConnector(conninfo=os.environ["BENCH_STORE"]))
    task = app.task(name="no_op")(no_op)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        with measured("enqueue", jobs) as enqueued:
            for _ in range(0, jobs, _LIST):
                await task.batch_defer_async(*[_CALL] * _LIST)
        report(enqueued)
        with measured("drain", jobs, lambda: handled) as drained:
            await app.run_worker_async(wait=False, concurrency=_AT_ONCE, delete_jobs="always")
    assert handled == jobs
    report(drained)


def main() -> None:
    """Fill a new database, then drain it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    uvloop.run(_measure(parser.parse_args().jobs))


if __name__ == "__main__":
    main()

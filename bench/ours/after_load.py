"""Postgres, right after a bulk load: how fast a worker drains it without statistics, in the middle, at the end.

Vacuum and analyze stay away until a tenth is drained, then come when they like.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from pathlib import Path

import asyncpg

from figures import say
from ours.shared import drain, opened, run
from ours.tasks import KIND, defined, enqueue

_AUTOVACUUM_AWAY = "ALTER SYSTEM SET autovacuum = off"
_AUTOVACUUM_BACK = "ALTER SYSTEM RESET autovacuum"
_RELOAD = "SELECT pg_reload_conf()"
_ANALYZED = "SELECT count(*) FROM pg_stats WHERE schemaname = 'carteiro' AND tablename = 'ready'"


class _Marks:
    """When each hundredth of the jobs had begun."""

    def __init__(self, jobs: int) -> None:
        self.times = [time.perf_counter()]
        self.tenth, self.all = asyncio.Event(), asyncio.Event()
        self._every = jobs // 100
        self._count = 0

    def one(self) -> None:
        self._count += 1
        if self._count % self._every == 0:
            self.times.append(time.perf_counter())
            if len(self.times) == 11:
                self.tenth.set()
            elif len(self.times) == 101:
                self.all.set()

    def per_second(self, first: int, last: int) -> float:
        """Between two hundredths."""
        return (last - first) * self._every / (self.times[last] - self.times[first])


async def _measure(folder: Path, jobs: int) -> None:
    admin = await asyncpg.connect(os.environ["BENCH_STORE"])
    await admin.execute(_AUTOVACUUM_AWAY)
    await admin.execute(_RELOAD)
    try:
        async with opened(folder) as post:
            say(f"ours: load {jobs:,} tasks")
            await enqueue(post, jobs)
        assert await admin.fetchval(_ANALYZED) == 0
        say("ours: drain them")
        async with opened(folder) as post:  # as a worker that was started after the load
            marks = _Marks(jobs)
            defined(post, marks.one)
            draining = asyncio.create_task(
                drain(post, KIND, begun=marks.all, progress=lambda: len(marks.times))
            )
            tenth = asyncio.create_task(marks.tenth.wait())
            await asyncio.wait({tenth, draining}, return_when=asyncio.FIRST_COMPLETED)
            tenth.cancel()
            await admin.execute(_AUTOVACUUM_BACK)
            await admin.execute(_RELOAD)
            await draining
    finally:
        await admin.execute(_AUTOVACUUM_BACK)
        await admin.execute(_RELOAD)
        await admin.close()
    for name, first, last in (
        ("first 1 %, no statistics", 0, 1),
        ("first 10 %, no statistics", 0, 10),
        ("middle (40-60 %)", 40, 60),
        ("last 10 %", 90, 100),
    ):
        print(json.dumps({"name": name, "per_second": marks.per_second(first, last)}), flush=True)


def main() -> None:
    """Load and drain."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        run(_measure(Path(folder), parser.parse_args().jobs), level="warn")


if __name__ == "__main__":
    main()

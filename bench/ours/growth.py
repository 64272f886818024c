"""A ledger on Postgres that grows: the cost of the path and of lists with more and more e-mails kept in it.

At 1,000, 10,000 and so on, and at the end: some more are accepted, claimed, declared and settled, then lists are read.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
from uuid_utils import uuid7

from carteiro import Carteiro
from carteiro.model import EMAIL, ClaimId, Dead, DeadReason, End, LeasedJob, Sent, Start, TenantId
from carteiro.policy import classify
from figures import measured, say
from ours import lists
from ours.emails import HTML
from ours.shared import TENANTS, opened, run, tenant
from watched import watched

_LIST = 1000
_BATCH = 500
_SAMPLE = 5000
_SAY_EVERY = 100_000
_READS = 50
_HOLD = timedelta(minutes=10)
_CONTENT = json.dumps({"html": HTML})
_DEAD = Dead(DeadReason.PERMANENT_ERROR, classify.classify_smtp("550 5.1.1 No such user"))
_DIES_EVERY = 100
_LISTS = {
    "of a tenant": "list_ms",
    "of a tenant, FAILED": "failed_ms",
    "of a tenant, to": "to_ms",
    "of a tenant, external id": "external_id_ms",
    "of a tenant, rare tag, FAILED": "tag_ms",
}
_BYTES = """
    SELECT sum(pg_table_size(relid))::bigint AS tables, sum(pg_indexes_size(relid))::bigint AS indexes,
        (pg_current_wal_insert_lsn() - '0/0')::bigint AS wal
    FROM pg_stat_user_tables WHERE schemaname = 'carteiro'
"""


class _Ledger:
    """The store, the number of messages in it and of pages read, and seconds spent by stage since the last look."""

    def __init__(self, post: Carteiro) -> None:
        self.kept = 0
        self.read = 0
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._post = post

    async def grow(self, messages: int) -> None:
        """Pass this many through, a list at a time."""
        for _ in range(0, messages, _LIST):
            new = [lists.message(self.kept + each, _CONTENT) for each in range(_LIST)]
            await self._timed("accept", self._post.backend.store.accept(new))
            for _ in range(0, _LIST, _BATCH):
                await self._work_off()
            self.kept += _LIST
            if self.kept % _SAY_EVERY == 0:
                say(f"ours: {self.kept:,} in the ledger")

    async def _work_off(self) -> None:
        store = self._post.backend.store
        claim_id = ClaimId(str(uuid7()))
        claimed = await self._timed(
            "claim", store.claim(claim_id=claim_id, kinds=[EMAIL], limit=_BATCH, lease=_HOLD)
        )
        assert len(claimed.jobs) == _BATCH
        starts = [Start(job.lease, "noop", _HOLD) for job in claimed.jobs]
        await self._timed("settle", store.declare(starts))
        ends = [_end(index, job) for index, job in enumerate(claimed.jobs)]
        await self._timed("settle", store.settle(ends))

    async def sampled(self, messages: int) -> dict[str, float]:
        """Pass this many more; microseconds of each by stage."""
        self.seconds.clear()
        await self.grow(messages)
        return {f"{stage}_us": spent / messages * 1e6 for stage, spent in self.seconds.items()}

    async def reads(self, messages: int) -> dict[str, float]:
        """Median milliseconds of a first page, by list."""
        found = {}
        for name, filters in lists.wanted(messages):
            if name in _LISTS:
                took = []
                for index in range(_READS):
                    took.append((await lists.timed(self._post, filters[index % len(filters)]))[0])
                    self.read += 1
                found[_LISTS[name]] = statistics.median(took)
        return found

    async def _timed(self, stage: str, work: Any) -> Any:
        begun = time.perf_counter()
        answer = await work
        self.seconds[stage] += time.perf_counter() - begun
        return answer


def _end(index: int, job: LeasedJob) -> End:
    return End(
        job.lease, _DEAD if index % _DIES_EVERY == 0 else Sent("noop", f"noop-{job.lease.job}")
    )


def _steps(messages: int) -> Iterator[int]:
    step = 1000
    while step < messages:
        yield step
        step *= 10
    yield messages


async def _measure(folder: Path, messages: int) -> None:
    database = await asyncpg.connect(os.environ["BENCH_STORE"])
    async with opened(folder) as post:
        await post.backend.tenants.ensure([TenantId(tenant(each)) for each in range(TENANTS)])
        ledger = _Ledger(post)
        with watched("growth", lambda: (ledger.kept, ledger.read)):
            for step in _steps(messages):
                before, log = ledger.kept, (await _bytes(database))["wal"]
                with measured("path", 0) as figure:  # all of it: vacuum and checkpoints come and go
                    await ledger.grow(step - ledger.kept)
                    sizes = await _bytes(database)
                    stages = await ledger.sampled(min(step, _SAMPLE))
                figure.count = ledger.kept - before
                log = (await _bytes(database))["wal"] - log
                line: dict[str, float] = {"kept": step}
                line |= {"tables": sizes["tables"], "indexes": sizes["indexes"]}
                line |= {"cpu_us": figure.cpu_us, "server_cpu_us": figure.server_cpu_us}
                line |= {"wal_each": log / figure.count} | stages | await ledger.reads(step)
                say(f"ours: {line}")  # a long run that fails has shown this much
                print(json.dumps(line), flush=True)
    await database.close()


async def _bytes(database: "asyncpg.Connection[asyncpg.Record]") -> dict[str, int]:
    [row] = await database.fetch(_BYTES)
    return dict(row)


def main() -> None:
    """Let it grow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000, help="a multiple of 1,000")
    with tempfile.TemporaryDirectory() as folder:
        run(_measure(Path(folder), parser.parse_args().messages))


if __name__ == "__main__":
    main()

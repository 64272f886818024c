"""Memory of Redis for a waiting job and for a dead letter."""

import argparse
import json
import os
import tempfile
from datetime import timedelta
from pathlib import Path

from redis.asyncio import Redis
from uuid_utils import uuid7

from carteiro import Carteiro
from carteiro.model import ClaimId, Dead, DeadReason, End
from carteiro.policy import classify
from figures import say
from ours.shared import opened, run
from ours.tasks import KIND, enqueue

_BATCH = 200
_LEASE = timedelta(minutes=10)
_FAILURE = classify.classify_smtp("550 5.1.1 No such user")


async def _measure(folder: Path, jobs: int) -> None:
    async with opened(folder) as post, Redis.from_url(os.environ["BENCH_QUEUE"]) as redis:
        empty = await _used(redis)
        say(f"ours: enqueue {jobs:,} tasks")
        await enqueue(post, jobs)
        _report("waiting job", (await _used(redis) - empty) / jobs)
        say("ours: let them die")
        await _kill(post, jobs)
        _report("dead letter", (await _used(redis) - empty) / jobs)


async def _kill(post: Carteiro, jobs: int) -> None:
    while jobs:
        claimed = await post.backend.store.claim(
            claim_id=ClaimId(str(uuid7())), kinds=[KIND], limit=_BATCH, lease=_LEASE
        )
        assert claimed.jobs
        dead = Dead(DeadReason.PERMANENT_ERROR, _FAILURE)
        await post.backend.store.settle(
            [End(job.lease, dead, attempted=True) for job in claimed.jobs]
        )
        jobs -= len(claimed.jobs)


async def _used(redis: Redis) -> int:
    return int((await redis.info("memory"))["used_memory"])


def _report(name: str, each: float) -> None:
    print(json.dumps({"name": name, "bytes": each}), flush=True)


def main() -> None:
    """Fill an empty server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    with tempfile.TemporaryDirectory() as folder:
        run(_measure(Path(folder), parser.parse_args().jobs))


if __name__ == "__main__":
    main()

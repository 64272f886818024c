"""A deep backlog: what a claimed job costs, and how large a worker's memory is, with so many waiting."""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from uuid_utils import uuid7

from carteiro.model import ClaimId, End, KindName, MessageId, NewMessage, Sent, TenantId
from figures import say
from ours.shared import opened, run

_KIND = KindName("waiting")
_LIST = 5000
_BATCH = 200
_DAY = timedelta(days=1)


async def _fill(folder: Path, waiting: int, tenants: int) -> None:
    async with opened(folder) as post:
        await post.backend.tenants.ensure([TenantId(f"t{each}") for each in range(tenants)])
        for first in range(0, waiting, _LIST):
            await post.backend.store.accept(
                [_message(first + index, tenants) for index in range(_LIST)]
            )
            if first % (_LIST * 40) == 0:
                say(f"ours: {first:,} of {waiting:,} waiting, {tenants:,} tenants")


def _message(index: int, tenants: int) -> NewMessage:
    return NewMessage(
        MessageId(str(uuid7())),
        TenantId(f"t{index * 7919 % tenants}"),  # in no order
        _KIND,
        '{"n":1}',
        "bench",
        _DAY,
        declares=False,
    )


async def _drain(folder: Path, jobs: int) -> None:
    async with opened(folder) as post:
        store, claiming, done = (
            post.backend.store,
            0.0,
            -_BATCH,
        )  # the first lets every tenant into the ring
        while done < jobs:
            begun = time.perf_counter()
            claimed = await store.claim(
                claim_id=ClaimId(str(uuid7())), kinds=[_KIND], limit=_BATCH, lease=_DAY / 100
            )
            claiming += time.perf_counter() - begun if done >= 0 else 0.0
            assert claimed.jobs
            done += len(claimed.jobs)
            ends = [End(job.lease, Sent("task", ""), attempted=True) for job in claimed.jobs]
            await store.settle(ends)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"claim_us": claiming / done * 1e6, "peak_mb": peak_mb}))


def main() -> None:
    """Fill, then claim and settle some of it in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", type=int, default=1_000_000)
    parser.add_argument("--tenants", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--drain", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.drain:
        run(_drain(asked.drain, asked.jobs))
        return
    with tempfile.TemporaryDirectory() as folder:
        run(_fill(Path(folder), asked.waiting, asked.tenants))
        os.sync()
        options = ["--jobs", asked.jobs, "--drain", folder]
        subprocess.run([sys.executable, "-m", "ours.backlog", *map(str, options)], check=True)


if __name__ == "__main__":
    main()

"""A deep backlog: what a claimed job costs with few and with many tenants, and how large a worker's memory is.

The two backlogs are claimed from by turns, so that a busy moment of the machine strikes both. Memory
is that of a process that works on one of them alone.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from uuid_utils import uuid7

from carteiro import Carteiro
from carteiro.model import ClaimId, End, KindName, MessageId, NewMessage, Sent, TenantId
from figures import say
from ours.shared import opened, run

LIST = 5000
_KIND = KindName("waiting")
_BATCH = 200
_WARM_UP = 5  # the first claims let every tenant into the ring
_DAY = timedelta(days=1)


async def _fill(folder: Path, waiting: int, tenants: int) -> None:
    async with opened(folder) as post:
        await post.backend.tenants.ensure([TenantId(f"t{each}") for each in range(tenants)])
        for first in range(0, waiting, LIST):
            await accept(post, first, tenants)
            if first % (LIST * 40) == 0:
                say(f"ours: {first:,} of {waiting:,} waiting, {tenants:,} tenants")
    os.sync()


async def accept(post: Carteiro, first: int, tenants: int) -> None:
    """Have a list of jobs more."""
    await post.backend.store.accept([_message(first + index, tenants) for index in range(LIST)])


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


async def claim_and_settle(post: Carteiro) -> tuple[int, float, float]:
    """Claim a batch and settle it; how many there were, and microseconds for each: claim alone, claim and settle."""
    begun = time.perf_counter()
    claimed = await post.backend.store.claim(
        claim_id=ClaimId(str(uuid7())), kinds=[_KIND], limit=_BATCH, lease=_DAY / 100
    )
    spent = time.perf_counter() - begun
    assert claimed.jobs
    ends = [End(job.lease, Sent("task", ""), attempted=True) for job in claimed.jobs]
    await post.backend.store.settle(ends)
    whole = time.perf_counter() - begun
    return len(claimed.jobs), spent / len(claimed.jobs) * 1e6, whole / len(claimed.jobs) * 1e6


async def _claim_us(post: Carteiro) -> float:
    return (await claim_and_settle(post))[1]


async def _compare(few: Path, many: Path, batches: int) -> None:
    say("ours: claim from both by turns")
    async with opened(few) as from_few, opened(many) as from_many:
        pairs = [
            (await _claim_us(from_few), await _claim_us(from_many))
            for _ in range(_WARM_UP + batches)
        ][_WARM_UP:]
    ratios = sorted(much / little for little, much in pairs)
    figures = {
        "few_us": statistics.median(little for little, _ in pairs),
        "many_us": statistics.median(much for _, much in pairs),
        "ratio": statistics.median(ratios),
        "ratio_low": ratios[len(ratios) // 10],
        "ratio_high": ratios[-1 - len(ratios) // 10],
    }
    print(json.dumps(figures))


async def _work(folder: Path, batches: int) -> None:
    async with opened(folder) as post:
        for _ in range(batches):
            await _claim_us(post)
    print(json.dumps({"peak_mb": _peak_mb()}))


def _peak_mb() -> float:
    """Of this program alone: `getrusage` counts what its parent had when it was forked."""
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    [peak] = [each for each in lines if each.startswith("VmHWM:")]
    return int(peak.split()[1]) / 1024


def _alone(folder: Path, batches: int) -> None:
    """Work on one backlog in a process of its own."""
    options = ["--batches", batches, "--work", folder]
    subprocess.run([sys.executable, "-m", "ours.backlog", *map(str, options)], check=True)


def main() -> None:
    """Fill three backlogs; compare two of them, then work on each alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", type=int, default=1_000_000)
    parser.add_argument("--tenants", type=int, default=10_000)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        run(_work(asked.work, asked.batches))
        return
    with tempfile.TemporaryDirectory() as root:
        few, many, short = (Path(root, name) for name in ("few", "many", "short"))
        for folder, waiting, tenants in (
            (few, asked.waiting, 20),
            (many, asked.waiting, asked.tenants),
            (short, 25_000, 20),
        ):
            folder.mkdir()
            run(_fill(folder, waiting, tenants))
        run(_compare(few, many, asked.batches))
        for folder in (few, many, short):
            _alone(folder, asked.batches)


if __name__ == "__main__":
    main()

"""Jobs that pass through a queue that is never long: the cost of a claim at first, in the middle, at the end."""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from carteiro import Carteiro
from carteiro.model import TenantId
from figures import say
from ours.backlog import LIST, accept, claim_and_settle
from ours.shared import TENANTS, opened, run


async def _pass(folder: Path, jobs: int) -> None:
    took: list[tuple[float, float]] = []
    async with opened(folder) as post:
        await post.backend.tenants.ensure([TenantId(f"t{each}") for each in range(TENANTS)])
        for first in range(0, jobs, LIST):
            await accept(post, first, TENANTS)
            took += await _work_off(post, LIST)
            if first % (LIST * 40) == 0:
                say(f"ours: {first:,} of {jobs:,} passed through")
    tenth, middle = max(1, len(took) // 10), len(took) // 2
    parts = {
        "first tenth": took[:tenth],
        f"tenth around {jobs // 2:,}": took[middle - tenth // 2 :][:tenth],
        "last tenth": took[-tenth:],
    }
    for name, batches in parts.items():
        claim, both = (statistics.median(each) for each in zip(*batches, strict=True))
        print(json.dumps({"name": name, "claim_us": claim, "both_us": both}), flush=True)


async def _work_off(post: Carteiro, jobs: int) -> list[tuple[float, float]]:
    """Microseconds for each job, batch by batch: claim alone, claim and settle."""
    took = []
    while jobs:
        done, claim_us, both_us = await claim_and_settle(post)
        took.append((claim_us, both_us))
        jobs -= done
    return took


def main() -> None:
    """Let them pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        run(_pass(Path(folder), parser.parse_args().jobs))


if __name__ == "__main__":
    main()

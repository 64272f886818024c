"""Jobs that pass through a queue that is never long: what a claim costs at the beginning and at the end."""

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
    took: list[float] = []
    async with opened(folder) as post:
        await post.backend.tenants.ensure([TenantId(f"t{each}") for each in range(TENANTS)])
        for first in range(0, jobs, LIST):
            await accept(post, first, TENANTS)
            took += await _work_off(post, LIST)
            if first % (LIST * 40) == 0:
                say(f"ours: {first:,} of {jobs:,} passed through")
    tenth = max(1, len(took) // 10)
    claims = {"first_us": took[:tenth], "last_us": took[-tenth:]}
    print(json.dumps({name: statistics.median(each) for name, each in claims.items()}), flush=True)


async def _work_off(post: Carteiro, jobs: int) -> list[float]:
    """Time to claim each job of a batch, batch by batch."""
    took = []
    while jobs:
        done, each_us = await claim_and_settle(post)
        took.append(each_us)
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

"""No-op tasks: enqueue in lists of 1,000, then drain in a process of its own."""

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from carteiro import Carteiro
from carteiro.model import KindName
from carteiro.tasks import Task
from figures import measured, report, say
from ours.shared import drain, opened, run, tenant

_LIST = 1000
_KIND = KindName("no-op")


def _call(index: int) -> dict[str, str]:
    return {"tenant": tenant(index), "body": "x" * 989}


def _defined(post: Carteiro, last: Callable[[], None] = lambda: None, jobs: int = 0) -> Task:
    left = jobs

    @post.task(_KIND)
    async def no_op(body: str) -> None:  # noqa: ARG001 - it is sent, that is all
        """Do nothing but count."""
        nonlocal left
        left -= 1
        if not left:
            last()

    return no_op


async def _enqueue(folder: Path, jobs: int) -> None:
    async with opened(folder) as post:
        no_op = _defined(post)
        with measured("task enqueue", jobs) as figure:
            for first in range(0, jobs, _LIST):
                await no_op.send_many([_call(first + index) for index in range(_LIST)])
    report(figure)


async def _drain(folder: Path, jobs: int) -> None:
    async with opened(folder) as post:
        begun = asyncio.Event()
        _defined(post, begun.set, jobs)
        with measured("task drain", jobs) as figure:
            await drain(post, _KIND, begun=begun)
    report(figure)


def main() -> None:
    """Fill a new file, then drain it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--drain", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.drain:
        run(_drain(asked.drain, asked.jobs), level="warn")  # as the peer: no line for each success
        return
    with tempfile.TemporaryDirectory() as folder:
        say(f"ours: enqueue {asked.jobs:,} tasks")
        run(_enqueue(Path(folder), asked.jobs))
        say("ours: drain them")
        again = [sys.executable, "-m", "ours.tasks", "--jobs", str(asked.jobs), "--drain", folder]
        subprocess.run(again, check=True)


if __name__ == "__main__":
    main()

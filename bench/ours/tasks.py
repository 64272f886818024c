"""No-op tasks: enqueue in lists of 1,000, then drain in a process of its own, or in several that begin together."""

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from carteiro import Carteiro
from carteiro.engine.tasks import Task
from carteiro.model import KindName
from figures import Figure, measured, report, reported, say
from ours.shared import drain, opened, run, tenant

LIST = 1000
KIND = KindName("no-op")
_STILL_S = 0.05


def _call(index: int) -> dict[str, str]:
    return {"tenant": tenant(index), "body": "x" * 989}


def defined(post: Carteiro, begun: Callable[[], None] = lambda: None) -> Task:
    """The task; it tells each time that it has begun."""

    @post.task(KIND)
    async def no_op(body: str) -> None:  # noqa: ARG001 - it is sent, that is all
        """Do nothing but count."""
        begun()

    return no_op


async def enqueue(post: Carteiro, jobs: int) -> None:
    """Enqueue a number of tasks."""
    no_op = defined(post)
    for first in range(0, jobs, LIST):
        await no_op.send_many([_call(first + index) for index in range(LIST)])


async def _enqueue(folder: Path, jobs: int) -> None:
    async with opened(folder) as post:
        with measured("task enqueue", jobs) as figure:
            await enqueue(post, jobs)
    report(figure)


class _Begun:
    """Counts the tasks that have begun in this process; ``event`` is set with the last one of ``jobs``."""

    def __init__(self, jobs: int) -> None:
        self.count = 0
        self.event = asyncio.Event()
        self._jobs = jobs

    def one(self) -> None:
        self.count += 1
        if self.count == self._jobs:
            self.event.set()

    async def pause(self) -> None:
        """Set the event when none began for a while: another process had the last one."""
        seen = 0
        while not seen or seen != self.count:
            seen = self.count
            await asyncio.sleep(_STILL_S)
        self.event.set()


async def _drain(folder: Path, jobs: int, *, is_alone: bool) -> None:
    async with opened(folder) as post:
        begun = _Begun(jobs)
        defined(post, begun.one)
        print("ready", flush=True)
        sys.stdin.read()  # until all are
        with measured("task drain", jobs) as figure:
            pause = None if is_alone else asyncio.create_task(begun.pause())
            await drain(post, KIND, begun=begun.event, progress=lambda: begun.count)
    if pause:
        await pause
    figure.count = begun.count
    report(figure)


def _drained(folder: str, jobs: int, workers: int) -> Figure:
    """Time of a number of processes together."""
    options = ["--jobs", str(jobs), "--workers", str(workers), "--drain", folder]
    command = [sys.executable, "-m", "ours.tasks", *options]
    pipe = subprocess.PIPE
    children = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(workers)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.close()
    figures = [reported(child.stdout.read()) for child in children if child.stdout]
    assert all(child.wait() == 0 for child in children)
    together = Figure("task drain", sum(each.count for each in figures))
    assert together.count == jobs
    together.seconds = max(each.seconds for each in figures)
    together.cpu_seconds = sum(each.cpu_seconds for each in figures)
    together.server_cpu_seconds = max(each.server_cpu_seconds for each in figures)
    return together


def main() -> None:
    """Fill a new store, then drain it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--drain", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.drain:
        # As the peers: no line for each success.
        run(_drain(asked.drain, asked.jobs, is_alone=asked.workers == 1), level="warn")
        return
    with tempfile.TemporaryDirectory() as folder:
        say(f"ours: enqueue {asked.jobs:,} tasks")
        run(_enqueue(Path(folder), asked.jobs))
        say(f"ours: drain them with {asked.workers}")
        report(_drained(folder, asked.jobs, asked.workers))


if __name__ == "__main__":
    main()

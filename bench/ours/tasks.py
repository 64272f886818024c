"""No-op tasks: enqueue in lists of 1,000, then drain in a process of its own, or in several that begin together."""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from carteiro import Carteiro
from carteiro.engine.tasks import Task
from carteiro.model import KindName
from figures import measured, report, say
from ours.shared import (
    TENANTS,
    Begun,
    check_drained,
    drained,
    drained_together,
    opened,
    run,
    tenant,
)

LIST = 1000
KIND = KindName("no-op")


def _call(index: int, tenants: int) -> dict[str, str]:
    return {"tenant": tenant(index, tenants), "body": "x" * 989}


def defined(post: Carteiro, begun: Callable[[], None] = lambda: None) -> Task:
    """The task; it tells each time that it has begun."""

    @post.task(KIND)
    async def no_op(body: str) -> None:  # noqa: ARG001 - it is sent, that is all
        """Do nothing but count."""
        begun()

    return no_op


async def enqueue(post: Carteiro, jobs: int, tenants: int = TENANTS) -> None:
    """Enqueue a number of tasks."""
    no_op = defined(post)
    for first in range(0, jobs, LIST):
        await no_op.send_many([_call(first + index, tenants) for index in range(LIST)])


async def _enqueue(folder: Path, jobs: int, tenants: int) -> None:
    async with opened(folder) as post:
        with measured("task enqueue", jobs) as figure:
            await enqueue(post, jobs, tenants)
    report(figure)


async def _drain(folder: Path, jobs: int, *, is_alone: bool) -> None:
    async with opened(folder) as post:
        begun = Begun(jobs, folder, is_alone=is_alone)
        defined(post, begun.one)
        report(await drained(post, begun, name="task drain"))


def main() -> None:
    """Fill a new store, then drain it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--tenants", type=int, default=TENANTS)
    parser.add_argument("--phase", choices=["enqueue", "drain"], help="on a server: this one alone")
    parser.add_argument("--drain", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.drain:
        # As the peers: no line for each success.
        run(_drain(asked.drain, asked.jobs, is_alone=asked.workers == 1), level="warn")
        return
    with tempfile.TemporaryDirectory() as folder:
        if asked.phase != "drain":
            say(f"ours: enqueue {asked.jobs:,} tasks of {asked.tenants:,} tenants")
            run(_enqueue(Path(folder), asked.jobs, asked.tenants))
        if asked.phase != "enqueue":
            say(f"ours: drain them with {asked.workers}")
            options = ("--jobs", asked.jobs, "--drain", folder)
            figure = drained_together("ours.tasks", *options, workers=asked.workers)
            assert figure.count == asked.jobs
            run(check_drained(Path(folder)))
            report(figure)


if __name__ == "__main__":
    main()

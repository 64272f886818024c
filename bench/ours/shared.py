"""Shared parts of our measurements: a store in a temporary folder, workers that drain it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

from carteiro import Carteiro
from carteiro.cli.process import tune
from carteiro.model import FINISHED, KindName
from carteiro.observability import log
from figures import Figure, measured, reported
from watched import watched

TENANTS = 20
_LOOK_EVERY_S = 0.02


def run(work: Coroutine[Any, Any, None], *, level: str = "info") -> None:
    """As `carteiro worker` runs: uvloop, the interpreter tuned, log lines written (and thrown away)."""
    tune()
    with Path(os.devnull).open("wb", buffering=0) as nowhere:
        log.configure(level, nowhere)
        uvloop.run(work)


@asynccontextmanager
async def opened(folder: Path, **settings: Any) -> AsyncIterator[Carteiro]:
    """The measured store: a file in this folder, or the one in ``BENCH_STORE`` and ``BENCH_QUEUE``.

    ``{name}`` in the store's address is the name of the folder.
    """
    url = os.environ.get("BENCH_STORE", f"sqlite:///{folder}/carteiro.db").format(name=folder.name)
    queue = os.environ.get("BENCH_QUEUE", "")
    async with Carteiro.open(url, queue=queue, **settings) as post:
        yield post


async def drain(
    post: Carteiro, kind: KindName, *, begun: asyncio.Event, progress: Callable[[], object]
) -> None:
    """Work until nothing of the kind waits or is in flight.

    ``begun`` is set when the last one has begun; ``progress`` says how many have, or whatever moves until then.
    """
    worker = asyncio.create_task(post.run_worker())
    await settled(post, kind, worker, begun=begun, progress=progress)
    post.stop()
    await worker


async def settled(
    post: Carteiro,
    kind: KindName,
    worker: "asyncio.Task[None]",
    *,
    begun: asyncio.Event,
    progress: Callable[[], object],
) -> None:
    """Wait for that while a worker works; an error if it ends, or if nothing moves any more."""
    rest: list[int] = []
    with watched(f"drain of {kind}", lambda: (progress(), rest[-1:])):
        beginning = asyncio.create_task(begun.wait())  # looking costs time, so it waits for the end
        await asyncio.wait({beginning, worker}, return_when=asyncio.FIRST_COMPLETED)
        beginning.cancel()
        while not worker.done():
            rest.append(await left(post, kind))
            if not rest[-1]:
                return
            await asyncio.sleep(_LOOK_EVERY_S)
        worker.result()
        raise RuntimeError("the worker ended before its work")


async def left(post: Carteiro, kind: KindName) -> int:
    """The number of unfinished jobs of the kind."""
    return sum(each.waiting + each.in_flight for each in await post.backend.tenants.standings(kind))


def tenant(index: int, tenants: int = TENANTS) -> str:
    """One of the tenants, in turns."""
    return f"tenant-{index % tenants:02}"


# --- several processes that begin together ----------------------------------------------------


class Begun:
    """Counts the jobs that have begun, here and in the other processes: each writes its number into the folder."""

    def __init__(self, jobs: int, folder: Path, *, is_alone: bool) -> None:
        self.count = self.total = 0
        self._jobs = jobs
        self._folder = folder
        self._is_alone = is_alone
        self._all = asyncio.Event()

    def one(self) -> None:
        """One more."""
        self.count += 1
        if self.count == self._jobs:
            self._all.set()

    async def wait(self) -> None:
        """Until all have begun."""
        with watched("drain", lambda: (self.count, self.total)):
            if self._is_alone:
                await self._all.wait()
                return
            while self.total < self._jobs:
                (self._folder / f"begun-{os.getpid()}").write_text(str(self.count), "ascii")
                numbers = (each.read_text("ascii") for each in self._folder.glob("begun-*"))
                self.total = sum(int(each or 0) for each in numbers)  # one may just be written
                await asyncio.sleep(_LOOK_EVERY_S)


async def drained(post: Carteiro, begun: Begun, *, name: str) -> Figure:
    """Say that this process is ready, begin when all are, and drain; of this process alone.

    Until the worker has stopped: then all that it began is settled. Asking the store costs too much with many tenants.
    """
    print("ready", flush=True)
    sys.stdin.read()  # until all are
    with measured(name, 0) as figure:
        worker = asyncio.create_task(post.run_worker())
        beginning = asyncio.create_task(begun.wait())
        await asyncio.wait({beginning, worker}, return_when=asyncio.FIRST_COMPLETED)
        if worker.done():
            worker.result()
            raise RuntimeError("the worker ended before its work")
        await beginning
        post.stop()
        await worker
    figure.count = begun.count
    return figure


async def check_drained(folder: Path) -> None:
    """Fail if a job is unfinished, by the ledger: a queue in Redis may have finished ones again, until their turn."""
    async with opened(folder) as post:
        states = await post.backend.reading.states()
    if rest := sum(number for state, number in states.items() if state not in FINISHED):
        raise RuntimeError(f"{rest} jobs are left")


def drained_together(module: str, *options: object, workers: int) -> Figure:
    """Drain in this number of processes, each this module with these options; their figures as one."""
    command = [sys.executable, "-m", module, "--workers", workers, *options]
    pipe = subprocess.PIPE
    children = [
        subprocess.Popen([*map(str, command)], stdin=pipe, stdout=pipe, text=True)
        for _ in range(workers)
    ]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.close()
        figures = [reported(child.stdout.read()) for child in children if child.stdout]
        assert all(child.wait() == 0 for child in children)
    finally:
        for child in children:
            child.kill()  # if one failed, the others would wait for it
    together = Figure(figures[0].name, sum(each.count for each in figures))
    together.seconds = max(each.seconds for each in figures if each.count)  # others had no turn
    together.cpu_seconds = sum(each.cpu_seconds for each in figures)
    together.server_cpu_seconds = max(each.server_cpu_seconds for each in figures)
    return together

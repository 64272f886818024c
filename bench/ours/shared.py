"""Shared parts of our measurements: a store in a temporary folder, a worker that drains it."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

from carteiro import Carteiro
from carteiro.cli.process import tune
from carteiro.model import KindName
from carteiro.observability import log
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


def tenant(index: int) -> str:
    """One of the tenants, in turns."""
    return f"tenant-{index % TENANTS:02}"

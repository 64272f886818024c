"""At 100 a second: from accept to the start of a task, and from accept to SENT, one worker in the same process.

The first second is not counted: connections are made, and servers read their functions for the first time.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from carteiro import Carteiro
from carteiro.model import MessageId
from figures import say
from ours.shared import opened, run, tenant
from watched import watched

_PER_SECOND = 100
_WARMING_UP = 100


async def _tasks(folder: Path, count: int) -> list[float]:
    started: dict[int, float] = {}
    async with opened(folder) as post:

        @post.task("tick")
        async def tick(number: int) -> None:
            started[number] = time.perf_counter()

        accepted: dict[int, float] = {}

        async def one(number: int) -> None:
            await tick.send(tenant=tenant(number), number=number)
            accepted[number] = time.perf_counter()

        worker = asyncio.create_task(post.run_worker())
        await _at_pace(one, count)
        with watched("pick-up", lambda: len(started)):
            while len(started) < count:
                await asyncio.sleep(0.01)
        post.stop()
        await worker
    return [max(0.0, started[number] - accepted[number]) for number in range(count)]


async def _mails(folder: Path, count: int) -> list[float]:
    async with opened(folder, provider="noop") as post:
        worker = asyncio.create_task(post.run_worker())
        ids: dict[int, MessageId] = {}

        async def one(number: int) -> None:
            answer = await post.send(
                tenant=tenant(number),
                to=f"customer{number}@example.com",
                subject="Tick",
                html="<p>Tick</p>",
            )
            ids[number] = answer.id

        await _at_pace(one, count)
        unsettled = list(ids.values())
        with watched("accept to SENT", lambda: len(unsettled)):
            while unsettled := list(await post.backend.reading.unsettled(unsettled)):
                await asyncio.sleep(0.05)
        post.stop()
        await worker
        return [await _seconds_to_sent(post, ids[number]) for number in range(count)]


async def _seconds_to_sent(post: Carteiro, message: MessageId) -> float:
    stored = await post.backend.reading.message(message)
    assert stored is not None
    assert stored.finished_at is not None
    return (stored.finished_at - stored.created_at).total_seconds()


async def _at_pace(one: Callable[[int], Coroutine[Any, Any, None]], count: int) -> None:
    begun = time.perf_counter()
    sending = []
    for number in range(count):
        await asyncio.sleep(max(0.0, begun + number / _PER_SECOND - time.perf_counter()))
        sending.append(asyncio.create_task(one(number)))
    await asyncio.gather(*sending)


async def _measure(count: int) -> None:
    for name, measure in (("pick-up", _tasks), ("accept to SENT", _mails)):
        with tempfile.TemporaryDirectory() as folder:
            say(f"ours: {name} at {_PER_SECOND} a second")
            waits = await measure(Path(folder), _WARMING_UP + count)
            seconds = sorted(waits[_WARMING_UP:])
        at = {share: seconds[int(share * (count - 1))] * 1000 for share in (0.5, 0.95, 0.99)}
        print(json.dumps({"name": name, "p50_ms": at[0.5], "p95_ms": at[0.95], "p99_ms": at[0.99]}))


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    run(_measure(parser.parse_args().count))


if __name__ == "__main__":
    main()

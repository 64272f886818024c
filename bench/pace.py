"""Jobs at 100 a second, and how long they wait.

The first second is not counted: connections are made, and servers read their functions for the first time.
"""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Sequence, Sized
from typing import Any

from watched import watched

PER_SECOND = 100
WARMING_UP = 100


async def at_pace(
    one: Callable[[int], Coroutine[Any, Any, None]], started: Sized | None, count: int
) -> None:
    """Send this many and those to warm up; with ``started``, wait until it has all of them."""
    begun = time.perf_counter()
    sending = []
    for number in range(WARMING_UP + count):
        await asyncio.sleep(max(0.0, begun + number / PER_SECOND - time.perf_counter()))
        sending.append(asyncio.create_task(one(number)))
    await asyncio.gather(*sending)
    if started is not None:
        with watched("pick-up", lambda: len(started)):
            while len(started) < WARMING_UP + count:
                await asyncio.sleep(0.01)


def print_waits(name: str, seconds: Sequence[float]) -> None:
    """Print the median and the tail."""
    counted = sorted(max(0.0, each) for each in seconds[WARMING_UP:])
    at = {share: counted[int(share * (len(counted) - 1))] * 1000 for share in (0.5, 0.95, 0.99)}
    print(json.dumps({"name": name, "p50_ms": at[0.5], "p95_ms": at[0.95], "p99_ms": at[0.99]}))

"""Jobs at 100 a second, and how long they wait.

*Pick-up* is the time from the answer to the enqueue call to the first line of the handler, here and in `measured.mjs`.
With the answer the producer knows that the job is stored; a job that starts before it counts as 0. The call itself is
not part of it: it takes an fsync with Postgres and with our ledger, but none with BullMQ, whose log is synced once a
second. So *call to start* is printed, too. Producer and worker are one process in all measures.

The first second is not counted: connections are made, and servers read their functions for the first time.
"""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence, Sized
from typing import Any, NamedTuple

from watched import watched

PER_SECOND = 100
WARMING_UP = 100


class Sent(NamedTuple):
    """When each job was sent, and when the call was answered."""

    called: dict[int, float]
    answered: dict[int, float]


async def at_pace(
    send: Callable[[int], Coroutine[Any, Any, None]], started: Sized, count: int
) -> Sent:
    """Send this many and those to warm up; wait until all have started."""
    sent = Sent({}, {})

    async def one(number: int) -> None:
        sent.called[number] = time.perf_counter()
        await send(number)
        sent.answered[number] = time.perf_counter()

    begun = time.perf_counter()
    sending = []
    for number in range(WARMING_UP + count):
        await asyncio.sleep(max(0.0, begun + number / PER_SECOND - time.perf_counter()))
        sending.append(asyncio.create_task(one(number)))
    await asyncio.gather(*sending)
    with watched("pick-up", lambda: len(started)):
        while len(started) < WARMING_UP + count:
            await asyncio.sleep(0.01)
    return sent


def print_pick_up(sent: Sent, started: Mapping[int, float]) -> None:
    """Print both times."""
    for name, since in (("pick-up", sent.answered), ("call to start", sent.called)):
        print_waits(name, [started[number] - since[number] for number in range(len(since))])


def print_waits(name: str, seconds: Sequence[float]) -> None:
    """Print the median and the tail."""
    counted = sorted(max(0.0, each) for each in seconds[WARMING_UP:])
    at = {share: counted[int(share * (len(counted) - 1))] * 1000 for share in (0.5, 0.95, 0.99)}
    print(json.dumps({"name": name, "p50_ms": at[0.5], "p95_ms": at[0.95], "p99_ms": at[0.99]}))

"""Load on a store in trouble: workers that are never restarted, and clients that retry."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Any, TypeAlias

from carteiro.errors import StoreUnavailable
from carteiro.model import MessageId
from end_to_end.crash.child import Orders
from end_to_end.crash.children import Child, children
from end_to_end.crash.places import Place
from end_to_end.crash.post_office import LEASE, PostOffice, opened
from end_to_end.crash.traffic import send, send_task, some_of_everything
from support.cut_proxy import CutProxy

Trouble: TypeAlias = Callable[[], Awaitable[None]]

WORKERS = 2
LULL_S = 0.1


@asynccontextmanager
async def workers_at(place: Place, **orders: Any) -> AsyncIterator[list[Child]]:
    """Running worker processes; in the end they are asked to stop, and none has died."""
    with children([Orders(place, **orders)] * WORKERS) as started:
        for each in started:
            await asyncio.to_thread(each.wait_for_start)
        yield started
        for each in started:
            each.tell(signal.SIGTERM)
        assert [await asyncio.to_thread(each.wait_for_end) for each in started] == [0] * WORKERS


async def under_load(place: Place, *troubles: Trouble, seed: int = 0) -> list[MessageId]:
    """Send a bit of everything before, during and after each trouble; the accepted messages."""
    accepted: list[MessageId] = []
    chance = Random(seed)
    async with opened(place) as post:
        await _send_some(post, chance, accepted)
        for trouble in troubles:
            sending = asyncio.create_task(_send_some(post, chance, accepted))
            await trouble()
            await sending
        await _send_some(post, chance, accepted)
    return accepted


async def _send_some(post: PostOffice, chance: Random, accepted: list[MessageId]) -> None:
    for _ in range(2):
        emails = some_of_everything(chance)
        await until_taken(partial(send, post, emails, accepted.extend))
        for task in (post.tasks.note, post.tasks.note_once):
            await until_taken(partial(send_task, post, task, chance, accepted.extend))
        await asyncio.sleep(LULL_S)


async def until_taken(ask: Callable[[], Awaitable[object]]) -> None:
    """Retry like a client that gets a 503."""
    while True:
        try:
            await ask()
        except StoreUnavailable:
            await asyncio.sleep(0.02)
        else:
            return


def cuts_at_random(proxy: CutProxy) -> Trouble:
    """Connections that break at any time, then are refused, then work again."""

    async def cut() -> None:
        proxy.cut_at_random(3, mean_bytes=30_000)
        proxy.cut()
        await asyncio.sleep(1.5)
        proxy.mend()

    return cut


def silence_of(proxy: CutProxy) -> Trouble:
    """Connections on which nothing comes and nothing ends, for longer than a lease lasts."""

    async def silence() -> None:
        proxy.freeze()
        await asyncio.sleep(LEASE.total_seconds())

    return silence


def _lines(place: Place) -> list[dict[str, Any]]:
    """The log lines of the processes, without those of libraries."""
    lines = place.log.read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def waits(place: Place) -> list[tuple[str, int]]:
    """The operation of each failure in the log, and its delay until the next try."""
    told = [line for line in _lines(place) if line["event"] == "store.failed"]
    return [(line["operation"], line["nextRetryDelay"]) for line in told]


def queue_waits(place: Place) -> list[int]:
    """The delay of each process that found the queue unreachable."""
    return [line["nextRetryDelay"] for line in _lines(place) if line["event"] == "queue.away"]

"""Several worker processes on one store, killed and stopped at random moments while messages come in.

A separate queue loses everything now and then.
"""

import asyncio
import signal
from dataclasses import dataclass
from random import Random

from carteiro.model import MessageId
from end_to_end.crash.child import Orders
from end_to_end.crash.children import Child, children
from end_to_end.crash.places import Place
from end_to_end.crash.post_office import HOLD, PostOffice, opened
from end_to_end.crash.traffic import (
    cancel_some,
    redrive_some,
    send,
    send_task,
    some_of_everything,
    start_redrive,
)

_LONGEST_LULL_S = 0.25


@dataclass(frozen=True)
class Weather:
    """The intensity of the storm."""

    workers: int = 3
    blows: int = 10  # processes killed or stopped
    stops: bool = True


def storm(place: Place, seed: int, weather: Weather) -> list[MessageId]:
    """Run the storm; return the accepted messages. In the end no worker is left, and work is unfinished."""
    orders = Orders(place, lingering_s=0.1)
    with children([orders] * weather.workers) as workers:
        return asyncio.run(_blow(place, Random(seed), weather, workers))


async def _blow(
    place: Place, chance: Random, weather: Weather, workers: list[Child]
) -> list[MessageId]:
    accepted: list[MessageId] = []
    async with opened(place) as post:
        for _ in range(weather.blows):
            await _send_some(post, chance, accepted)
            await asyncio.sleep(chance.uniform(0, _LONGEST_LULL_S))
            if place.queue and chance.random() < 0.2:
                await asyncio.to_thread(place.lose_queue)
            await _hit(workers, chance, stops=weather.stops)
    return accepted


async def _send_some(post: PostOffice, chance: Random, accepted: list[MessageId]) -> None:
    ids = await send(post, some_of_everything(chance), accepted.extend)
    tasks = post.tasks
    for task in (tasks.note, tasks.note_in_thread, tasks.note_once, tasks.linger):
        ids.append(await send_task(post, task, chance, accepted.extend))
    await cancel_some(post, ids, chance)
    await redrive_some(post, chance)
    await start_redrive(post, chance)


async def _hit(workers: list[Child], chance: Random, *, stops: bool) -> None:
    """Kill one and start another in its place, or stop one past its hold."""
    place = chance.randrange(len(workers))
    victim = workers[place]
    await asyncio.to_thread(victim.wait_for_start)
    if stops and chance.random() < 0.3:
        victim.tell(signal.SIGSTOP)
        await asyncio.sleep(HOLD.total_seconds() * chance.uniform(0.5, 1.5))
        victim.tell(signal.SIGCONT)
        return
    victim.tell(signal.SIGKILL)
    await asyncio.to_thread(victim.wait_for_end)
    workers[place] = Child(victim.orders)

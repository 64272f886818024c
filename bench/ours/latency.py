"""At 100 a second, one worker in the same process: pick-up of a task (see pace.py), and from accept to SENT."""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from carteiro import Carteiro
from carteiro.model import MessageId
from figures import say
from ours.shared import opened, run, tenant
from pace import PER_SECOND, Sent, at_pace, print_pick_up, print_waits
from watched import watched


async def _tasks(folder: Path, count: int) -> tuple[Sent, dict[int, float]]:
    started: dict[int, float] = {}
    async with opened(folder) as post:

        @post.task("tick")
        async def tick(number: int) -> None:
            started[number] = time.perf_counter()

        async def one(number: int) -> None:
            await tick.send(tenant=tenant(number), number=number)

        worker = asyncio.create_task(post.run_worker())
        sent = await at_pace(one, started, count)
        post.stop()
        await worker
    return sent, started


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

        await at_pace(one, ids, count)
        unsettled = list(ids.values())
        with watched("accept to SENT", lambda: len(unsettled)):
            while unsettled := list(await post.backend.reading.unsettled(unsettled)):
                await asyncio.sleep(0.05)
        post.stop()
        await worker
        return [await _seconds_to_sent(post, ids[number]) for number in range(len(ids))]


async def _seconds_to_sent(post: Carteiro, message: MessageId) -> float:
    stored = await post.backend.reading.message(message)
    assert stored is not None
    assert stored.finished_at is not None
    return (stored.finished_at - stored.created_at).total_seconds()


async def _measure(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        say(f"ours: pick-up at {PER_SECOND} a second")
        print_pick_up(*await _tasks(Path(folder), count))
    with tempfile.TemporaryDirectory() as folder:
        say(f"ours: accept to SENT at {PER_SECOND} a second")
        print_waits("accept to SENT", await _mails(Path(folder), count))


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    run(_measure(parser.parse_args().count))


if __name__ == "__main__":
    main()

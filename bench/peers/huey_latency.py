"""Huey on SQLite, durable: pick-up at 100 a second, its consumer in the same process, with its own pace of polling."""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from huey import SqliteHuey

from pace import at_pace, print_pick_up


async def _measure(path: Path, count: int) -> None:
    huey = SqliteHuey("bench", filename=str(path), fsync=True, results=False)
    started: dict[int, float] = {}

    def tick(number: int) -> None:
        started[number] = time.perf_counter()

    send = huey.task(name="tick")(tick)

    async def one(number: int) -> None:
        await asyncio.to_thread(send, number)

    consumer = huey.create_consumer(workers=1, periodic=False)
    consumer.start()
    sent = await at_pace(one, started, count)
    consumer.stop(graceful=True)
    print_pick_up(sent, started)


def main() -> None:
    """Measure on a new file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(Path(folder) / "huey.db", parser.parse_args().count))


if __name__ == "__main__":
    main()

"""The Python calls of 100 tickets from a list of records to the end of each, without servers; limits: `budget.toml`.

Prints JSON: for tickets of which none fails, and of which one in a hundred always fails and becomes a dead letter.
"""

import asyncio
import cProfile
import json
import os
import pstats
import sys
from pathlib import Path

import uvloop

from carteiro.cli.process import tune
from carteiro.observability import log
from carteiro.tickets import Ticket
from carteiro.tickets.consume import pool

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from support.memory_lane import MemoryLane

TICKETS = 10_000
_LIST = 1000
_FAILS_EVERY = 100


async def measure() -> dict[str, float]:
    """Count both, after a run that imports what is imported late."""
    await _counted(fails=True)
    return {"calls": await _counted(fails=False), "calls_failing": await _counted(fails=True)}


async def _counted(*, fails: bool) -> float:
    lane = MemoryLane(concurrency=100)
    lane.log.most_at_once = _LIST
    for each in range(TICKETS):
        lane.log.put(f"ticket-{each}", fails=fails and each % _FAILS_EVERY == 0)
    failing = TICKETS // _FAILS_EVERY if fails else 0
    done, is_over = 0, asyncio.Event()

    async def handle(ticket: Ticket) -> None:
        nonlocal done
        if ticket.fields["fails"]:
            raise ConnectionError("it always fails")
        done += 1
        if done == TICKETS - failing:
            is_over.set()

    lane.function = handle
    profile = cProfile.Profile()
    profile.enable()
    async with lane.working():
        await is_over.wait()
        while len(lane.dead_letters.deaths) < failing:
            await asyncio.sleep(0.01)
    profile.disable()
    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return round(100 * calls / TICKETS, 1)


def main() -> None:
    """Measure, and let no handler's turn end by the clock."""
    pool._BREATH_S = 60.0  # noqa: SLF001 - a slow machine has more turns
    tune()
    with Path(os.devnull).open("wb", buffering=0) as nowhere:
        log.configure("info", nowhere)
        print(json.dumps(uvloop.run(measure())))


if __name__ == "__main__":
    main()

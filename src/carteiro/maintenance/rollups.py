"""Notes of what happened are added up by minute and by hour.

A crash loses nothing and counts nothing twice: notes are deleted in the transaction that adds them up.
"""

import time
from collections import Counter
from datetime import UTC, datetime, timedelta

from carteiro.errors import QueueAway
from carteiro.maintenance.loop import run_led
from carteiro.model import MILLISECOND, ZERO
from carteiro.model.figures import Figures
from carteiro.ports.failures import Failures
from carteiro.ports.reading import Reading
from carteiro.ports.rollups import Rollups
from carteiro.ports.upkeep import Upkeep

_PAGE = 500  # notes in one transaction, some ten milliseconds
_PRUNED = 1000
_LOOK_EVERY = timedelta(minutes=1)


async def roll_up(  # noqa: PLR0913 - the ports, and a setting each
    upkeep: Upkeep,
    rollups: Rollups,
    failures: Failures,
    reading: Reading,
    *,
    minutes: timedelta,
    hours: timedelta,
    groups: timedelta,
    most: int,
    every: timedelta = timedelta(seconds=10),
) -> None:
    """Add up until cancelled; once a minute, look at the queue and delete what is past its retention."""
    look_at = 0.0  # by a clock that nobody sets

    async def page() -> bool:
        nonlocal look_at
        if await rollups.fold(limit=_PAGE, most=most) == _PAGE:
            return True
        if time.monotonic() < look_at:
            return False
        look_at = time.monotonic() + _LOOK_EVERY.total_seconds()
        if figures := await _queue(reading, datetime.now(UTC)):
            await rollups.see(figures)
        pruned = await failures.prune(older=groups, limit=_PRUNED)
        return pruned + await rollups.prune(minutes=minutes, hours=hours, limit=_PRUNED) >= _PRUNED

    await run_led(upkeep, "rollups", page, every=every)


async def fold_all(rollups: Rollups, *, most: int) -> None:
    """Add up all notes; for one-shot processes."""
    while await rollups.fold(limit=_PAGE, most=most) == _PAGE:
        pass


async def _queue(reading: Reading, now: datetime) -> Figures:
    """The jobs in flight, and the wait of the oldest ready one; nothing if the queue is empty or unreachable."""
    try:
        depths = await reading.depths()
    except QueueAway:
        return Counter()
    ages = [now - each.oldest_due_at for each in depths if each.oldest_due_at is not None]
    figures = Counter(
        max_in_flight=sum(each.in_flight for each in depths),
        max_queue_age_ms=max([ZERO, *ages]) // MILLISECOND,
    )
    return +figures

"""Polling for a change by another process."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0


async def polls(*, within: timedelta) -> AsyncIterator[None]:
    """Yield at once, then after pauses that double, for the last time when ``within`` has passed."""
    until = time.monotonic() + within.total_seconds()
    pause = _FIRST_PAUSE_S
    while True:
        yield
        left = until - time.monotonic()
        if left <= 0:
            return
        await asyncio.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE_S)

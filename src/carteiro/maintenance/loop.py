"""One maintenance loop: become leader, do a page, repeat at once while there is more, otherwise sleep."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

from uuid_utils import uuid7

from carteiro.model import Via
from carteiro.observability import log
from carteiro.ports.upkeep import Upkeep
from carteiro.runtime.acting import act_as, on_this_machine

PROCESS = str(uuid7())  # the name of this process as a leader


async def run_led(
    upkeep: Upkeep, task: str, page: Callable[[], Awaitable[bool]], *, every: timedelta
) -> None:
    """Run ``page`` until cancelled, while this process leads ``task``; ``page`` returns True if there is more.

    The term is longer than the pause, so a live leader keeps it; after a crash another process takes over. Short pauses
    do not renew it each time: a renewal is a write.
    """
    act_as(on_this_machine(Via.UPKEEP, "upkeep"))
    term = 3 * every + timedelta(seconds=10)
    renew_at = 0.0
    while True:
        has_more = False
        try:
            now = time.monotonic()
            if now >= renew_at:
                is_leader = await upkeep.lead(task, holder=PROCESS, term=term)
                renew_at = now + term.total_seconds() / 4 if is_leader else 0.0
            if renew_at:
                has_more = await page()
        except Exception as error:  # noqa: BLE001 - the next round may succeed, and a loop must not end unnoticed
            log.upkeep_failed(task, error)
        await asyncio.sleep(0 if has_more else every.total_seconds())

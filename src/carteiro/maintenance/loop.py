"""One loop of upkeep: take the lead, do a page, do the next at once while there is more, else sleep."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from uuid_utils import uuid7

from carteiro.observability import log
from carteiro.ports.upkeep import Upkeep

_PROCESS = str(uuid7())  # who leads, among processes


async def run_led(
    upkeep: Upkeep, task: str, page: Callable[[], Awaitable[bool]], *, every: timedelta
) -> None:
    """Run ``page`` for ever, as long as this process leads ``task``; page answers whether there is more.

    The term outlasts the pause, so that the lead stays; of a process that died it passes on.
    """
    while True:
        has_more = False
        try:
            if await upkeep.lead(task, holder=_PROCESS, term=3 * every + timedelta(seconds=10)):
                has_more = await page()
        except Exception as error:  # noqa: BLE001 - the next round may do better, and no loop may end unseen
            log.upkeep_failed(task, error)
        await asyncio.sleep(0 if has_more else every.total_seconds())

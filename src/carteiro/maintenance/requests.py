"""Changes that applications request by SQL are applied as soon as a notification arrives.

A crash loses nothing: the next round, or the next process, finds requests that were not applied.
"""

import asyncio
from datetime import timedelta

from carteiro.maintenance.loop import PROCESS
from carteiro.observability import log
from carteiro.ports.table_queue import RetryWait, TableQueue
from carteiro.ports.upkeep import Upkeep

_PAGE = 500
_TERM = timedelta(seconds=5)  # of leadership: two processes would only block each other


async def apply_requests(
    requests: TableQueue,
    upkeep: Upkeep,
    wait_after: RetryWait,
    *,
    every: timedelta = timedelta(seconds=1),
) -> None:
    """Apply until cancelled."""
    while True:
        rings = requests.rings()
        try:
            if await requests.has_requests() and await upkeep.lead(
                "requests", holder=PROCESS, term=_TERM
            ):
                await apply_all(requests, wait_after)
        except Exception as error:  # noqa: BLE001 - the next round may succeed, and a loop must not end unnoticed
            log.upkeep_failed("requests", error)
            await asyncio.sleep(every.total_seconds())
        await requests.wait(every, since=rings)


async def apply_all(requests: TableQueue, wait_after: RetryWait) -> None:
    """Apply all requests; those of messages that change at this moment stay for the next round."""
    applied = 0
    while count := (await requests.apply(wait_after, limit=_PAGE)).count:
        applied += count
    if applied:
        log.upkeep_done("requests", count=applied)

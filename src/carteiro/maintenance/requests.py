"""Changes that applications requested by SQL are applied, as soon as a request is heard of.

Nothing is lost if a process dies here: a request that was not applied is found by the next round, or the next process.
"""

import asyncio
from datetime import timedelta

from uuid_utils import uuid7

from carteiro.observability import log
from carteiro.ports.table_queue import RetryWait, TableQueue
from carteiro.ports.upkeep import Upkeep

_PAGE = 500
_PROCESS = str(uuid7())
_TERM = timedelta(
    seconds=5
)  # of leading: two that apply the same would only be in each other's way


async def apply_requests(
    requests: TableQueue,
    upkeep: Upkeep,
    wait_after: RetryWait,
    *,
    every: timedelta = timedelta(seconds=1),
) -> None:
    """Apply for ever."""
    while True:
        rings = requests.rings()
        try:
            if await requests.has_requests() and await upkeep.lead(
                "requests", holder=_PROCESS, term=_TERM
            ):
                await apply_all(requests, wait_after)
        except Exception as error:  # noqa: BLE001 - the next round may do better, and no loop may end unseen
            log.upkeep_failed("requests", error)
            await asyncio.sleep(every.total_seconds())
        await requests.wait(every, since=rings)


async def apply_all(requests: TableQueue, wait_after: RetryWait) -> None:
    """Apply all that are there; what changes at this moment is left for the next time."""
    applied = 0
    while count := (await requests.apply(wait_after, limit=_PAGE)).count:
        applied += count
    if applied:
        log.upkeep_done("requests", count=applied)

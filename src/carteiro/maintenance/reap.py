"""Leases and holds that ran out are taken back; safe anywhere, so nobody needs to lead it."""

import asyncio
from datetime import timedelta

from carteiro.observability import log
from carteiro.ports.store import Store

_PAGE = 500
_GRACE = timedelta(
    seconds=2
)  # as long as a worker waits at most until it tries to reach the store again


async def reap(store: Store, *, every: timedelta = timedelta(seconds=5)) -> None:
    """Reap for ever. Claims find such jobs too: this is for kinds that nobody claims right now.

    When the store has failed, nothing is reaped before everybody had time to reach it again and extend its leases.
    """
    has_failed = False
    while True:
        reaped, wait = 0, every
        try:
            reaped = await store.reap(limit=0 if has_failed else _PAGE)
            if has_failed:
                has_failed, wait = False, max(every, _GRACE)
        except Exception as error:  # noqa: BLE001 - the next round may do better, and no loop may end unseen
            has_failed = True
            log.upkeep_failed("reap", error)
        if reaped:
            log.upkeep_done("reap", count=reaped)
        await asyncio.sleep(0 if reaped == _PAGE else wait.total_seconds())

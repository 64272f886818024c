"""Expired leases and holds are released; safe in every process, so it needs no leader."""

import asyncio
from datetime import timedelta

from carteiro.observability import log
from carteiro.ports.store import Store

_PAGE = 500
_GRACE = timedelta(seconds=2)  # the longest wait of a worker before it retries the store


async def reap(store: Store, *, every: timedelta = timedelta(seconds=5)) -> None:
    """Reap until cancelled. Claims find such jobs too: this is for kinds that no worker claims now.

    After a store failure nothing is reaped until workers had time to reconnect and extend their leases.
    """
    has_failed = False
    while True:
        reaped, wait = 0, every
        try:
            reaped = await store.reap(limit=0 if has_failed else _PAGE)
            if has_failed:
                has_failed, wait = False, max(every, _GRACE)
        except Exception as error:  # noqa: BLE001 - the next round may succeed, and a loop must not end unnoticed
            has_failed = True
            log.upkeep_failed("reap", error)
        if reaped:
            log.upkeep_done("reap", count=reaped)
        await asyncio.sleep(0 if reaped == _PAGE else wait.total_seconds())

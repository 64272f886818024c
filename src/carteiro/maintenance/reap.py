"""Leases and holds that ran out are taken back; safe anywhere, so nobody needs to lead it."""

import asyncio
from datetime import timedelta

from carteiro.observability import log
from carteiro.ports.store import Store

_PAGE = 500


async def reap(store: Store, *, every: timedelta = timedelta(seconds=5)) -> None:
    """Reap for ever. Claims find such jobs too: this is for kinds that nobody claims right now."""
    while True:
        reaped = 0
        try:
            reaped = await store.reap(limit=_PAGE)
        except Exception as error:  # noqa: BLE001 - the next round may do better, and no loop may end unseen
            log.upkeep_failed("reap", error)
        if reaped:
            log.upkeep_done("reap", count=reaped)
        await asyncio.sleep(0 if reaped == _PAGE else every.total_seconds())

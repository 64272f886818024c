"""The reference model: a store on plain dicts, lost at exit. What it answers is what every store must answer."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from carteiro.model import Fairness
from carteiro.ports import Backend
from carteiro.stores.memory.dead_letters import MemoryDeadLetters
from carteiro.stores.memory.inbox import MemoryInbox
from carteiro.stores.memory.keys import MemoryKeys
from carteiro.stores.memory.marks import MemoryMarks
from carteiro.stores.memory.rates import MemoryRates
from carteiro.stores.memory.reading import MemoryReading
from carteiro.stores.memory.recipients import MemoryRecipients
from carteiro.stores.memory.store import MemoryStore
from carteiro.stores.memory.suppressions import MemorySuppressions, MemoryTracking
from carteiro.stores.memory.tables import Tables
from carteiro.stores.memory.templates import MemoryTemplates
from carteiro.stores.memory.tenants import MemoryTenants
from carteiro.stores.memory.upkeep import MemoryUpkeep
from carteiro.stores.memory.wake import MemoryWake

__all__ = ["open_memory"]

_AS_CONFIGURED = Fairness()
_A_WEEK = timedelta(days=7)


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000


@asynccontextmanager
async def open_memory(
    *,
    clock: Callable[[], int] = _wall_clock,
    fairness: Fairness = _AS_CONFIGURED,
    dead_letter_ttl: timedelta = _A_WEEK,
) -> AsyncIterator[Backend]:
    """All ports on one fresh, empty store; ``clock`` counts milliseconds since 1970."""
    tables = Tables(clock=clock, fairness=fairness, dead_letter_ttl=dead_letter_ttl)
    yield Backend(
        store=MemoryStore(tables),
        tenants=MemoryTenants(tables),
        keys=MemoryKeys(tables),
        templates=MemoryTemplates(tables),
        recipients=MemoryRecipients(tables),
        suppressions=MemorySuppressions(tables),
        tracking=MemoryTracking(tables),
        rates=MemoryRates(tables),
        dead_letters=MemoryDeadLetters(tables),
        reading=MemoryReading(tables),
        upkeep=MemoryUpkeep(tables),
        inbox=MemoryInbox(tables),
        marks=MemoryMarks(tables),
        wake=MemoryWake(tables),
    )

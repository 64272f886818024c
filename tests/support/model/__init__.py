"""The model of a message's path: plain dicts, slow and obviously right. Every store must answer as it does."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from carteiro.model import Fairness
from carteiro.ports import Backend
from support.model.dead_letters import ModelDeadLetters
from support.model.reading import ModelReading
from support.model.store import ModelStore
from support.model.tables import Tables
from support.model.tenants import ModelTenants
from support.model.upkeep import ModelUpkeep

__all__ = ["open_model"]


@dataclass
class Model:
    """The ports of the path, and those that change or read its result."""

    store: ModelStore
    tenants: ModelTenants
    dead_letters: ModelDeadLetters
    reading: ModelReading
    upkeep: ModelUpkeep


@asynccontextmanager
async def open_model(
    *, clock: Callable[[], int], fairness: Fairness, dead_letter_ttl: timedelta
) -> AsyncIterator[Backend]:
    """A fresh, empty model; of a `Backend` it has the ports of `Model` alone."""
    tables = Tables(clock=clock, fairness=fairness, dead_letter_ttl=dead_letter_ttl)
    model = Model(
        store=ModelStore(tables),
        tenants=ModelTenants(tables),
        dead_letters=ModelDeadLetters(tables),
        reading=ModelReading(tables),
        upkeep=ModelUpkeep(tables),
    )
    yield cast("Backend", model)

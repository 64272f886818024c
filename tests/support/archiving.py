"""Helpers for tests of the archive."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

from carteiro.config import TicketSettings, load
from support.mongo_server import MongoServer

COLLECTION = "execution_tickets_dlq"


def tickets_settings(**given: str) -> TicketSettings:
    """The settings of the lane, with these changed: by their names in the environment."""
    environ = {f"CARTEIRO_TICKETS_{name}": each for name, each in given.items()}
    return load(environ=environ).tickets


def clock_at(moment: datetime) -> Callable[[], datetime]:
    """A clock that stands still."""
    return lambda: moment


def kept_in(mongo: MongoServer, database: str) -> list[dict[str, Any]]:
    """All documents of an archive, in the order of their tickets."""
    with mongo.client() as client:
        return list(client[database][COLLECTION].find().sort("ticket_id"))


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for another process or thread."""
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(is_so):
            await asyncio.sleep(0.05)

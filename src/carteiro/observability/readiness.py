"""Readiness of a process: accepting needs only the ledger; working needs ledger and queue."""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from carteiro.errors import StoreError
from carteiro.model import value
from carteiro.observability import log
from carteiro.ports import Backend
from carteiro.ports.queue import QueueWatch

ASK_AGAIN = timedelta(seconds=5)

_PATIENCE_S = 2.0  # less than the timeout of a load balancer

Answer = TypeVar("Answer")


class Role(StrEnum):
    """The work of a process; one may do both."""

    API = "api"
    WORKER = "worker"


class Readiness(StrEnum):
    """The readiness for a role; degraded: accepted work waits."""

    READY = "ready"
    DEGRADED = "degraded"
    UNREADY = "unready"


class QueueState(StrEnum):
    """The state of a separate queue; a full one hands out jobs but takes none."""

    REACHABLE = "reachable"
    FULL = "full"
    AWAY = "away"


@value
class Sight:
    """The state of ledger and queue; ``queue`` None: the ledger holds the jobs itself."""

    is_writable: bool
    queue: QueueState | None


def readiness(role: Role, sight: Sight) -> Readiness:
    """Return the readiness for a role."""
    if not sight.is_writable:
        return Readiness.UNREADY
    if sight.queue in {None, QueueState.REACHABLE}:
        return Readiness.READY
    if role is Role.API:
        return Readiness.DEGRADED
    return Readiness.UNREADY if sight.queue is QueueState.AWAY else Readiness.READY


async def look(backend: Backend) -> Sight:
    """Check ledger and queue, within seconds in any case."""
    # Accepting an empty list needs the same as a real accept: room, lock and commit.
    accepted, queue = await asyncio.gather(
        _asked(backend.store.accept([])), _queue_state(backend.queue)
    )
    return Sight(accepted is not None, queue)


async def _queue_state(queue: QueueWatch | None) -> QueueState | None:
    if queue is None:
        return None
    memory = await _asked(queue.look())
    if memory is None:
        return QueueState.AWAY
    return QueueState.FULL if memory.is_full else QueueState.REACHABLE


async def _asked(question: Awaitable[Answer]) -> Answer | None:
    """Return the answer; None, after a line in the log, if it fails."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return await question
    except (StoreError, TimeoutError) as error:
        log.store_failed("ready", error, wait=ASK_AGAIN)
        return None

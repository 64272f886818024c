"""Whether a process can do its work: accepting needs the ledger, and goes on without the queue; working needs both."""

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

_PATIENCE_S = 2.0  # less than what a balancer waits for

Answer = TypeVar("Answer")


class Role(StrEnum):
    """What a process does; one may do both."""

    API = "api"
    WORKER = "worker"


class Readiness(StrEnum):
    """Whether it can; degraded: it can, and what comes of it waits."""

    READY = "ready"
    DEGRADED = "degraded"
    UNREADY = "unready"


class QueueState(StrEnum):
    """How a queue is that is kept apart; a full one hands jobs out and takes none."""

    REACHABLE = "reachable"
    FULL = "full"
    AWAY = "away"


@value
class Sight:
    """What was seen; ``queue`` None: the ledger keeps its jobs itself."""

    is_writable: bool
    queue: QueueState | None


def readiness(role: Role, sight: Sight) -> Readiness:
    """Whether this can be done, as things are."""
    if not sight.is_writable:
        return Readiness.UNREADY
    if sight.queue in {None, QueueState.REACHABLE}:
        return Readiness.READY
    if role is Role.API:
        return Readiness.DEGRADED
    return Readiness.UNREADY if sight.queue is QueueState.AWAY else Readiness.READY


async def look(backend: Backend) -> Sight:
    """See how ledger and queue are, within seconds, whatever state they are in."""
    # Accepting nothing goes the whole way of a real accept: room, lock and commit.
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
    """The answer; None, and a line in the log, if there is none."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return await question
    except (StoreError, TimeoutError) as error:
        log.store_failed("ready", error, wait=ASK_AGAIN)
        return None

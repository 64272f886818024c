"""Health checks: liveness and readiness."""

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.documents import Health
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.observability.readiness import (
    ASK_AGAIN,
    QueueState,
    Readiness,
    Role,
    Sight,
    look,
    readiness,
)
from carteiro.ports import Backend

_NO_LEDGER = "The store cannot be written: nothing is accepted"
_DETAILS = {
    QueueState.AWAY: "The queue is unreachable: messages are accepted and stored, and are sent when it is back",
    QueueState.FULL: "The queue is full: messages are accepted and stored, and are sent when it has room",
}


class HealthChecks(Endpoints):
    """Endpoints of ``/health``; they need no key and reveal nothing confidential."""

    def __init__(self, backend: Backend, roles: Sequence[Role]) -> None:
        self._backend = backend
        self._roles = roles
        self._looking: asyncio.Task[Sight] | None = None

    @Endpoint("GET", "/health/live", "Is it running?", Health)
    async def live(self, _: Request) -> Response:
        """200 while the process answers at all."""
        return Health(status="live").as_response()

    @Endpoint("GET", "/health/ready", "Can it do its work?", Health, also=503)
    async def ready(self, _: Request) -> Response:
        """200 while messages can be stored; `degraded` if a separate queue is unreachable.

        Otherwise 503. The page of a worker is 503 while the queue is unreachable, too: it cannot work.
        """
        sight = await self._look()
        roles = {role: readiness(role, sight) for role in self._roles}
        status = roles[self._roles[0]]
        health = Health(
            status=status,
            ledger="writable" if sight.is_writable else "unavailable",
            queue=sight.queue,
            roles={role.value: each.value for role, each in roles.items()},
            detail=_detail(sight),
        )
        if status is not Readiness.UNREADY:
            return health.as_response()
        return health.as_response(503, headers={"Retry-After": str(ASK_AGAIN.seconds)})

    async def _look(self) -> Sight:
        """One look for all who ask meanwhile: they need no key, and it takes a connection to the store."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(look(self._backend))
        return await asyncio.shield(self._looking)


def _detail(sight: Sight) -> str | None:
    if not sight.is_writable:
        return _NO_LEDGER
    return None if sight.queue is None else _DETAILS.get(sight.queue)

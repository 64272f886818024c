"""Whether it is running, and whether it can accept."""

import asyncio
from collections.abc import Iterable

from starlette.requests import Request
from starlette.responses import Response

from carteiro.errors import StoreError
from carteiro.intake.http.documents import Health
from carteiro.intake.http.endpoint import Endpoint
from carteiro.intake.http.refusal import COME_AGAIN
from carteiro.ports import Store
from carteiro.telemetry import log

_PATIENCE_S = 2.0  # less than what a balancer waits for


class HealthChecks:
    """What ``/health`` offers; needs no key and tells nothing that a stranger may not know."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def endpoints(self) -> Iterable[Endpoint]:
        """All of them."""
        yield Endpoint("GET", "/health/live", self.live, "Is it running?", Health)
        yield Endpoint(
            "GET", "/health/ready", self.ready, "Can it accept?", Health, also={503: Health}
        )

    async def live(self, _: Request) -> Response:
        """200 as long as the process answers at all."""
        return Health(status="live").as_response()

    async def ready(self, _: Request) -> Response:
        """200 when messages can be stored, else 503."""
        if await self._is_writable():
            return Health(status="ready", ledger="writable").as_response()
        later = {"Retry-After": str(COME_AGAIN.seconds)}
        return Health(status="unready", ledger="unavailable").as_response(503, headers=later)

    async def _is_writable(self) -> bool:
        """Accepting nothing goes the whole way of a real accept: room, lock and commit."""
        try:
            await asyncio.wait_for(self._store.accept([]), _PATIENCE_S)
        except (StoreError, TimeoutError) as error:
            log.store_failed("ready", error, wait=COME_AGAIN)
            return False
        return True

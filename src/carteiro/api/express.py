"""The fast path: endpoints with a fixed address are called without router and middleware.

These layers of the framework cost a request about as much as all our own work; only addresses with
parameters, and unknown ones, need them.
"""

from collections.abc import Iterable
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from carteiro.api.envelope import Envelope
from carteiro.api.lean import LeanRoute
from carteiro.observability.metrics import Tally


class Express:
    """An ASGI application in front of another one."""

    def __init__(self, routes: Iterable[LeanRoute], *, tally: Tally, otherwise: ASGIApp) -> None:
        self._routes = {
            (method, route.path): route
            for route in routes
            if not route.param_convertors
            for method in route.methods or ()
        }
        self._called = Envelope(_call, tally=tally)
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        is_http = scope["type"] == "http"
        route = self._routes.get((scope["method"], scope["path"])) if is_http else None
        if route is None:
            await self._otherwise(scope, receive, send)
            return
        scope["route"] = route
        await self._called(scope, receive, send)


async def _call(scope: Scope, receive: Receive, send: Send) -> None:
    response = await scope["route"].endpoint(_QuickRequest(scope, receive, send))
    await response(scope, receive, send)


class _QuickRequest(Request):
    """A request whose headers are indexed once; otherwise each missing header costs a search."""

    headers: Headers = Headers()

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        super().__init__(scope, receive, send)
        self.headers = _QuickHeaders(scope)


class _QuickHeaders(Headers):
    def __init__(self, scope: Scope) -> None:
        super().__init__(scope=scope)
        self._first = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in reversed(scope["headers"])
        }

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401 - as it is declared above
        return self._first.get(key, default)

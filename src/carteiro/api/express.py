"""The fast path: endpoints with a fixed address are called without router and middleware.

These layers of the framework cost a request about as much as all our own work; only addresses with
parameters, and unknown ones, need them.
"""

from collections.abc import Iterable
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from carteiro.api.connection import Exchange
from carteiro.api.envelope import Answer, sane_id
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
        self._tally = tally
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        is_http = scope["type"] == "http"
        route = self._routes.get((scope["method"], scope["path"])) if is_http else None
        if route is None:
            await self._otherwise(scope, receive, send)
            return
        scope["route"] = route
        request = _QuickRequest(scope, receive, send)
        request_id = sane_id(request.headers.first.get(b"x-request-id", b""))
        answer = Answer(send, scope, self._tally, request_id)
        try:
            response = await route.endpoint(request)
            exchange = getattr(receive, "__self__", None)
            if not isinstance(exchange, Exchange) or not answer.at_once(response, exchange):
                await response(scope, receive, answer)
        except Exception as error:  # noqa: BLE001 - answered, or raised again
            await answer.fail(error, receive)
        finally:
            answer.end()


class _QuickRequest(Request):
    """A request whose headers are indexed once; otherwise each missing header costs a search."""

    headers: "_QuickHeaders" = None  # type: ignore[assignment] # a property above

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self._receive = receive
        self._send = send
        self._stream_consumed = self._is_disconnected = False
        self.headers = _QuickHeaders(scope)


class _QuickHeaders(Headers):
    def __init__(self, scope: Scope) -> None:
        self._list = scope["headers"]
        self.first = dict(reversed(self._list))

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401 - as it is declared above
        found = self.first.get(key.encode())
        return default if found is None else found.decode("latin-1")

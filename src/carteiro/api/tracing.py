"""Spans of the requests that submit messages."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from http import HTTPStatus
from typing import Any, TypeAlias

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from carteiro.api.envelope import TRACE, request_id_of
from carteiro.api.refusal import Refusal, of_invalid
from carteiro.errors import InvalidMessage, StoreError, TenantMissing, TextUnfit
from carteiro.observability.tracing import Tracing

TRACE_HEADERS: tuple[Mapping[str, Any], ...] = (
    {
        "name": "traceparent",
        "in": "header",
        "required": False,
        "description": "Trace context of W3C: the attempts belong to this trace, if tracing is on. One that is not"
        " valid is ignored.",
        "schema": {"type": "string"},
    },
)

_HAS_LEFT = 499  # as proxies log it

_Call: TypeAlias = Callable[[Request], Awaitable[Response]]


def traced(call: _Call, tracing: Tracing, *, method: str, route: str) -> _Call:
    """The same endpoint, with a span around each request of a tenant."""

    @wraps(call)
    async def answer(request: Request) -> Response:
        headers = [(name.decode("latin-1"), each) for name, each in request.scope["headers"]]
        told = {
            "http.request.method": method,
            "http.route": route,
            "url.path": route,
            "url.scheme": request.scope["scheme"],
            "carteiro.request_id": request_id_of(request),
        }
        trace = tracing.request(f"{method} {route}", headers, told)
        request.scope[TRACE] = trace
        try:
            response = await call(request)
        except BaseException as error:
            trace.end(_status_of(error))
            raise
        trace.end(response.status_code)
        return response

    return answer


def _status_of(error: BaseException) -> int:  # noqa: PLR0911 - a table, one error a line
    """The status that `refusal_of` answers with. A client that has left gets none, and may still have sent a mail."""
    match error:
        case Refusal():
            return error.status
        case InvalidMessage():
            return of_invalid(error).status
        case ClientDisconnect() | asyncio.CancelledError():
            return _HAS_LEFT
        case TenantMissing():
            return HTTPStatus.UNAUTHORIZED
        case TextUnfit():
            return HTTPStatus.UNPROCESSABLE_ENTITY
        case StoreError():
            return HTTPStatus.SERVICE_UNAVAILABLE
        case _:
            return HTTPStatus.INTERNAL_SERVER_ERROR

"""The envelope of every request: an id, also in the answer, and errors in one shape."""

import re
from collections.abc import Sequence
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uuid_utils import uuid7

from carteiro.api.connection import Exchange
from carteiro.api.in_flight import SHARE
from carteiro.api.refusal import Refusal, not_found, refusal_of
from carteiro.errors import TextUnfit
from carteiro.observability.metrics import Tally

NO_ROUTE = "none"
TRACE = "carteiro.trace"  # key of a request's `RequestTrace` in its scope, if tracing is on
_REFUSED_BY_ROUTER = {
    404: "There is nothing at this address: /docs lists all addresses",
    405: "This address does not support that method: /docs lists the supported ones",
}
_SANE_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")


class Envelope:
    """ASGI middleware around all endpoints."""

    def __init__(self, app: ASGIApp, *, tally: Tally) -> None:
        self._app = app
        self._tally = tally

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = sane_id(dict(scope["headers"]).get(b"x-request-id", b""))
        answer = Answer(send, scope, self._tally, request_id)
        try:
            await self._app(scope, receive, answer)
        except Exception as error:  # noqa: BLE001 - answered, or raised again
            await answer.fail(error, receive)
        finally:
            answer.end()


class Answer:
    """Sends a response with the request's id on it, and counts it."""

    __slots__ = ("_scope", "_send", "_tally", "is_started", "request_id")

    def __init__(self, send: Send, scope: Scope, tally: Tally, request_id: str) -> None:
        self._send = send
        self._scope = scope
        self._tally = tally
        self.request_id = request_id
        self.is_started = False
        scope.setdefault("state", {})["request_id"] = request_id

    async def __call__(self, message: Message) -> None:
        """Send a message of ASGI."""
        if message["type"] == "http.response.start":
            headers = self._started(message["status"], message["headers"])
            message = {**message, "headers": headers}
        await self._send(message)

    def at_once(self, response: Response, exchange: Exchange) -> bool:
        """Send a response that is known as a whole; False if that is not possible."""
        if exchange.must_wait or not hasattr(response, "body"):
            return False
        headers = self._started(response.status_code, response.raw_headers)
        exchange.answer(response.status_code, headers, response.body)
        return True

    def _started(
        self, status: int, headers: Sequence[tuple[bytes, bytes]]
    ) -> list[tuple[bytes, bytes]]:
        self.is_started = True
        route = self._scope.get("route")
        path = NO_ROUTE if route is None else route.path  # real addresses contain ids
        self._tally.answered(self._scope["method"], path, status)
        return [*headers, (b"x-request-id", self.request_id.encode())]

    async def fail(self, error: Exception, receive: Receive) -> None:
        """Answer with the refusal that the error stands for; raise it if the answer has begun."""
        if isinstance(error, ClientDisconnect):
            return  # the client left before its body was read: nothing was done
        if self.is_started:
            raise error
        response = _refusal(error, self._scope, self.request_id).as_response(self.request_id)
        await response(self._scope, receive, self)

    def end(self) -> None:
        """Return the share of the request."""
        share = self._scope.pop(SHARE, None)
        if share is not None:
            share.end()


def request_id_of(request: Request) -> str:
    """The id of a request: the client's own, or a new one."""
    request_id: str = request.scope["state"]["request_id"]
    return request_id


def _refusal(error: Exception, scope: Scope, request_id: str) -> Refusal:
    """The answer to an error; a name in the address that no store can hold is not found."""
    if isinstance(error, TextUnfit) and "\0" in scope["path"]:
        return not_found("thing")
    trace = scope.get(TRACE)
    return refusal_of(error, request_id, "" if trace is None else trace.trace_id)


def sane_id(given: bytes) -> str:
    """The client's own id if it is safe in logs and headers, else a new one."""
    return given.decode() if _SANE_ID.fullmatch(given) else str(uuid7())


def _methods_at(request: Request) -> set[str]:
    """The methods of all routes of this address; the router names only those of the first."""
    return {
        method
        for route in request.app.routes
        if route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    }


async def answer_http_error(request: Request, error: Exception) -> Response:
    """Answer for the router: an unknown address or method."""
    if not isinstance(error, HTTPException):  # registered for no other
        raise error
    text = _REFUSED_BY_ROUTER.get(error.status_code, error.detail)
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(sorted(_methods_at(request)))
    refusal = Refusal(error.status_code, text, headers=headers)
    return refusal.as_response(request_id_of(request))

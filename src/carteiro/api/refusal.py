"""All refusals of requests, in one shape."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TypeVar

from starlette.responses import Response

from carteiro import errors
from carteiro.api.documents import ErrorBody, ErrorDocument, FieldFault
from carteiro.model import OverLimit, StorageLimit, TenantUnknown
from carteiro.observability import log

Thing = TypeVar("Thing")

STORAGE_LIMIT = "STORAGE_LIMIT"
COME_AGAIN = timedelta(seconds=5)
_UNFIT = (
    "The request has values that are not allowed: no text may hold U+0000 or half a surrogate pair"
)

_WINDOWS = {
    timedelta(minutes=1): "a minute",
    timedelta(hours=1): "an hour",
    timedelta(days=1): "a day",
}
_CODES: Mapping[int, str] = {
    400: "MALFORMED_REQUEST",
    401: "UNAUTHORIZED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    408: "REQUEST_TIMEOUT",
    409: "CONFLICT",
    413: "REQUEST_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    422: "INVALID_VALUE",
    429: "TOO_MANY_REQUESTS",
    500: "INTERNAL_ERROR",
    503: "STORE_UNAVAILABLE",
}


class Refusal(Exception):
    """The request is refused, and changes nothing."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        fields: Sequence[errors.FieldError] = (),
        headers: Mapping[str, str] | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.fields = fields
        self.headers = dict(headers or {})
        self.code = code or _CODES.get(status) or HTTPStatus(status).name

    def as_response(self, request_id: str) -> Response:
        """The response with the error."""
        error = self.as_error(request_id)
        return ErrorDocument(error=error).as_response(self.status, headers=self.headers)

    def as_error(self, request_id: str) -> ErrorBody:
        """The error as a part of an answer."""
        return ErrorBody(
            code=self.code,
            message=self.message,
            request_id=request_id,
            timestamp=datetime.now(UTC),
            details=[FieldFault(field=each.field, message=each.message) for each in self.fields],
        )


def unauthorized() -> Refusal:
    """No key, or an unknown one; both get the same answer."""
    text = "A valid API key is needed, as X-API-Key, Authorization: Bearer or apikey"
    return Refusal(401, text, headers={"WWW-Authenticate": "Bearer"})


def token_needed() -> Refusal:
    """No token, or not an admin token; both get the same answer."""
    text = "An admin token is needed, as X-API-Key or Authorization: Bearer"
    return Refusal(401, text, headers={"WWW-Authenticate": "Bearer"})


def forbidden() -> Refusal:
    """The key is valid, but used from a forbidden address."""
    return Refusal(403, "Requests of this tenant are not allowed from this address")


def not_found(what: str) -> Refusal:
    """There is none, or it belongs to another tenant; both get the same answer."""
    return Refusal(404, f"There is no such {what}")


def found(thing: Thing | None, what: str) -> Thing:
    """The thing; a `Refusal` if there is none."""
    if thing is None:
        raise not_found(what)
    return thing


def bad_value(field: str, message: str) -> Refusal:
    """One value that is not allowed."""
    return of_invalid(errors.InvalidMessage([errors.FieldError(field, message)]))


def over_limit(answer: OverLimit) -> Refusal:
    """The tenant exceeded its limit of messages."""
    headers = {
        "X-RateLimit-Limit": str(answer.limit),
        "X-RateLimit-Remaining": str(answer.remaining),
        "X-RateLimit-Reset": str(math.ceil(answer.resets_at.timestamp())),
    }
    what = f"{answer.limit} messages {_WINDOWS[answer.window]}"
    return too_fast(what, answer.retry_after, headers)


def too_fast(what: str, wait: timedelta, headers: Mapping[str, str] | None = None) -> Refusal:
    """The caller exceeded a rate limit; ``what`` names it."""
    wait_s = whole_seconds(wait)
    text = f"Rate limit exceeded: {what}. Retry after {wait_s} s."
    return Refusal(429, text, headers={"Retry-After": str(wait_s), **(headers or {})})


def too_busy(message: str) -> Refusal:
    """The caller has too many requests in flight."""
    return Refusal(429, message, headers={"Retry-After": "1"})


def stored(answer: Thing | TenantUnknown | StorageLimit) -> Thing:
    """The answer of a store; a `Refusal` if the tenant is gone, or over its storage limit."""
    match answer:
        case TenantUnknown():
            raise not_found("tenant")
        case StorageLimit(what, most):
            text = f"At most {most} {what} can be kept: delete some first"
            raise Refusal(422, text, code=STORAGE_LIMIT)
        case _:
            return answer


def whole_seconds(wait: timedelta) -> int:
    """The wait for a header: rounded up, at least 1."""
    return max(1, math.ceil(wait.total_seconds()))


def refusal_of(  # noqa: PLR0911 - a table, one error a line
    error: Exception, request_id: str, trace_id: str = ""
) -> Refusal:
    """The answer to an error; internal details go only to the log."""
    match error:
        case Refusal():
            return error
        case errors.InvalidMessage():
            return of_invalid(error)
        case errors.FeedbackRefused():
            return Refusal(error.status, str(error))
        case errors.TenantMissing():  # deleted since its key was looked up
            return unauthorized()
        case errors.BadCursor():
            return bad_value("cursor", "is not a cursor of this list")
        case errors.TextUnfit():
            return Refusal(422, _UNFIT)
        case errors.StoreError():
            log.request_failed(request_id, error, status=503, trace_id=trace_id)
            return _of_store(error)
        case _:
            log.request_failed(request_id, error, status=500, trace_id=trace_id)
            return Refusal(500, "Internal error; it was logged")


def _of_store(error: errors.StoreError) -> Refusal:
    """The store failed: nothing was changed, and the client may retry."""
    text = "The store is unavailable: try again"
    if isinstance(error, errors.StoreFull):
        text = "The store is full: try again later"
    if isinstance(error, errors.StoreMoved):
        text = (
            "The data is being moved to another store, or was moved: nothing was changed, try again"
        )
    return Refusal(503, text, headers={"Retry-After": str(COME_AGAIN.seconds)})


def of_invalid(error: errors.InvalidMessage) -> Refusal:
    """400 if it is malformed or incomplete, 422 if a value is not allowed."""
    if any(each.missing or each.field == "body" for each in error.fields):
        return Refusal(400, "The request is malformed or incomplete", fields=error.fields)
    return Refusal(422, "The request has values that are not allowed", fields=error.fields)

"""Every way in which a request can fail, in one shape."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

from starlette.responses import Response

from carteiro.errors import FieldError, InvalidMessage, StoreError, StoreFull, TenantMissing
from carteiro.intake.http.documents import ErrorBody, ErrorDocument, FieldFault
from carteiro.telemetry import log

COME_AGAIN = timedelta(seconds=5)

_CODES: Mapping[int, str] = {
    400: "MALFORMED_REQUEST",
    401: "UNAUTHORIZED",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "REQUEST_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    422: "INVALID_VALUE",
    500: "INTERNAL_ERROR",
    503: "STORE_UNAVAILABLE",
}


class Refusal(Exception):
    """The request is not done, and leaves nothing behind."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        fields: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.fields = fields
        self.headers = dict(headers or {})

    def as_response(self, request_id: str) -> Response:
        """The answer that tells the client."""
        code = _CODES.get(self.status) or HTTPStatus(self.status).name
        error = ErrorBody(
            code=code,
            message=self.message,
            request_id=request_id,
            timestamp=datetime.now(UTC),
            details=[FieldFault(field=each.field, message=each.message) for each in self.fields],
        )
        return ErrorDocument(error=error).as_response(self.status, headers=self.headers)


def unauthorized() -> Refusal:
    """No key, or one that speaks for nobody: the two are not told apart."""
    text = "A valid API key is needed, as X-API-Key or as Authorization: Bearer"
    return Refusal(401, text, headers={"WWW-Authenticate": "Bearer"})


def refusal_of(error: Exception, request_id: str) -> Refusal:
    """What the client is told of an error; what it must not know goes to the log alone."""
    match error:
        case Refusal():
            return error
        case InvalidMessage():
            return _of_invalid(error)
        case TenantMissing():  # gone since its key was looked up
            return unauthorized()
        case StoreFull():
            log.request_failed(request_id, error, status=503)
            text = "There is no room for new messages right now: try again later"
            return Refusal(503, text, headers={"Retry-After": str(COME_AGAIN.seconds)})
        case StoreError():
            log.request_failed(request_id, error, status=503)
            text = "Nothing can be stored or read right now: try again"
            return Refusal(503, text, headers={"Retry-After": str(COME_AGAIN.seconds)})
        case _:
            log.request_failed(request_id, error, status=500)
            return Refusal(500, "Something went wrong here, and was logged")


def _of_invalid(error: InvalidMessage) -> Refusal:
    """Malformed or incomplete is 400; well-formed with a bad value is 422."""
    if any(each.missing or each.field == "body" for each in error.fields):
        return Refusal(400, "The request is malformed or incomplete", fields=error.fields)
    return Refusal(422, "The request has values that are not allowed", fields=error.fields)

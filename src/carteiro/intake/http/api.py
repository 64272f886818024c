"""The ASGI application: which address leads to which endpoint, and how that is documented."""

from typing import Any

from fastapi import FastAPI, Security
from fastapi.security import APIKeyHeader, HTTPBearer
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException

from carteiro.email import Email
from carteiro.intake.http.documents import EmailAccepted, EmailView, ErrorDocument, Health
from carteiro.intake.http.emails import AcceptEmail, Emails
from carteiro.intake.http.envelope import Envelope, answer_http_error
from carteiro.intake.http.health import HealthChecks
from carteiro.intake.http.key_ring import KeyRing
from carteiro.intake.http.lean import LeanRoute
from carteiro.ports import Backend

_SCHEMAS = "#/components/schemas/{model}"
_SENT_AS_JSON = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": _SCHEMAS.format(model="Email")}}},
    }
}
_EMAIL_ID = {
    "parameters": [
        {
            "name": "id",
            "in": "path",
            "required": True,
            "description": "The outboxId that the e-mail was accepted under.",
            "schema": {"type": "string", "format": "uuid"},
        }
    ]
}


def create_api(*, accept: AcceptEmail, backend: Backend) -> FastAPI:
    """The API of one open backend; ``accept`` commits an e-mail durably before it answers."""
    api = _Api(title="Carteiro", summary="Delivered, or you know exactly why not.", version="1")
    api.router.route_class = LeanRoute
    api.router.redirect_slashes = False  # a moved POST loses its body with many clients
    api.add_middleware(Envelope)
    api.add_exception_handler(HTTPException, answer_http_error)
    # On the application itself: a router that is included costs every request about 10 µs more.
    _add_emails(api, Emails(accept, backend.reading, KeyRing(backend.tenants)))
    _add_health(api, HealthChecks(backend.store))
    return api


def _add_emails(api: FastAPI, emails: Emails) -> None:
    # A lean route runs no dependency: these tell readers of the documentation how to name
    # themselves, and the key ring sees to it.
    ways_to_name_oneself = [
        Security(APIKeyHeader(name="X-API-Key", scheme_name="X-API-Key", auto_error=False)),
        Security(HTTPBearer(scheme_name="Bearer", auto_error=False)),
    ]
    api.add_api_route(
        "/v1/email/send",
        emails.send,
        methods=["POST"],
        status_code=202,
        tags=["e-mail"],
        summary="Accept an e-mail",
        response_model=EmailAccepted,
        responses=_errors(400, 401, 413, 415, 422, 500, 503),
        dependencies=ways_to_name_oneself,
        openapi_extra=_SENT_AS_JSON,
    )
    api.add_api_route(
        "/v1/emails/{id}",
        emails.show,
        methods=["GET"],
        tags=["e-mail"],
        summary="Look at an e-mail and its events",
        response_model=EmailView,
        responses=_errors(401, 404, 500, 503),
        dependencies=ways_to_name_oneself,
        openapi_extra=_EMAIL_ID,
    )


def _add_health(api: FastAPI, checks: HealthChecks) -> None:
    api.add_api_route(
        "/health/live",
        checks.live,
        tags=["health"],
        summary="Is it running?",
        response_model=Health,
    )
    api.add_api_route(
        "/health/ready",
        checks.ready,
        tags=["health"],
        summary="Can it accept?",
        response_model=Health,
        responses={503: {"model": Health}},
    )


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorDocument} for status in statuses}


class _Api(FastAPI):
    """FastAPI that also documents what a lean route reads by itself."""

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        _, read = models_json_schema([(Email, "validation")], ref_template=_SCHEMAS)
        document["components"]["schemas"].update(read["$defs"])
        return document

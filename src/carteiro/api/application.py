"""The ASGI application: which address leads to which endpoint, and how that is documented."""

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Receive, Scope, Send

from carteiro.api.admin.dead_letters import DeadLetterEndpoints
from carteiro.api.admin.fairness import FairnessEndpoints
from carteiro.api.admin.keys import KeyEndpoints
from carteiro.api.admin.messages import MessageEndpoints
from carteiro.api.admin.stats import StatsEndpoints
from carteiro.api.admin.tenants import TenantEndpoints
from carteiro.api.batch import BatchIntake
from carteiro.api.docs_page import SAFE, page_of
from carteiro.api.emails import Emails
from carteiro.api.endpoint import Access, Endpoint, add_endpoint, schemas_of
from carteiro.api.envelope import Envelope, answer_http_error
from carteiro.api.express import Express
from carteiro.api.feedback import FeedbackEndpoints
from carteiro.api.health import HealthChecks
from carteiro.api.in_flight import InFlight, PerMinute
from carteiro.api.intake import Intake, Office
from carteiro.api.key_ring import KeyRing
from carteiro.api.lean import LeanRoute
from carteiro.api.metrics import MetricsEndpoints
from carteiro.api.networks import Networks
from carteiro.api.recipients import RecipientEndpoints
from carteiro.api.suppressions import SuppressionEndpoints
from carteiro.api.table_queue import TableQueueEndpoints
from carteiro.api.templates import TemplateEndpoints
from carteiro.api.whose import AnyTenants, TheirOwn
from carteiro.config.provider_spec import Fetch
from carteiro.email.message import MAX_REQUEST_BYTES
from carteiro.observability.metrics import Tally
from carteiro.observability.readiness import Role
from carteiro.runtime.fetching import fetch

_V1 = "/v1"
_ADMIN_TENANT = "/admin/v1/tenants/{tenant}"


def create_api(office: Office, *, works: bool = False, fetch: Fetch = fetch) -> FastAPI:
    """The API of one open post office; it commits an e-mail durably before it answers.

    ``fetch`` gets what feedback of providers needs, as the certificates that it is signed with.
    ``works``: the process is a worker, too, and says so when it is asked whether it is ready.
    """
    api = _Api(
        title="Carteiro",
        summary="Delivered, or you know exactly why not.",
        version="1",
        docs_url=None,  # FastAPI's pages load scripts from elsewhere; ours loads nothing
        redoc_url=None,
        openapi_url=None,
        tally=office.tally,
    )
    api.state.body_timeout = office.settings.api.request_timeout
    api.add_api_route("/docs", api.show_docs, methods=["GET", "HEAD"], include_in_schema=False)
    api.add_route("/openapi.json", api.show_openapi, include_in_schema=False)
    proxies = Networks(office.settings.api.trusted_proxies.split())
    bounds = office.settings.api
    api.state.proxies = proxies
    unchecked = bounds.max_unchecked_body_bytes
    api.state.unchecked = InFlight(
        most_requests=bounds.max_connections,
        most_bytes=max(unchecked // 4, MAX_REQUEST_BYTES),
        most_together=unchecked,
    )
    in_flight = InFlight(
        most_requests=bounds.max_requests_per_tenant, most_bytes=bounds.max_body_bytes_per_tenant
    )
    ring = KeyRing(
        office.backend.keys,
        office.backend.tenants,
        proxies=proxies,
        in_flight=in_flight,
        unknown_per_minute=bounds.unknown_keys_per_minute,
    )
    # On the application itself: a router that is included costs every request about 10 µs more.
    _add_for_tenants(api, office, ring)
    _add_for_administrators(api, office, ring)
    feedback = FeedbackEndpoints(
        office.settings, office.backend.tracking, office.tally, fetch=fetch
    )
    api.offer("feedback", Access.ANYONE, feedback.endpoints())
    roles = (Role.API, Role.WORKER) if works else (Role.API,)
    api.offer("health", Access.ANYONE, HealthChecks(office.backend, roles).endpoints())
    return api


def _add_for_tenants(api: "_Api", office: Office, ring: KeyRing) -> None:
    ports, intake, whose = office.backend, Intake(office), TheirOwn(ring)
    emails = Emails(intake, ports.store, ports.reading, ring)
    api.offer("e-mail", Access.TENANT, emails.endpoints())
    api.offer("e-mail", Access.TENANT, BatchIntake(intake, ring).endpoints())
    settings = office.settings
    templates = TemplateEndpoints(
        ports.templates,
        whose,
        prefix=_V1,
        limits=settings.storage.template_limits,
        presets=settings.presets,
        previews=PerMinute(settings.api.previews_per_minute),
    )
    api.offer("templates", Access.TENANT, templates.endpoints())
    recipients = RecipientEndpoints(ports.recipients, whose, prefix=_V1)
    api.offer("recipients", Access.TENANT, recipients.endpoints())
    suppressions = SuppressionEndpoints(
        ports.suppressions, whose, prefix=_V1, most=settings.storage.suppressions
    )
    api.offer("suppressions", Access.TENANT, suppressions.endpoints())
    wait = office.settings.api.attempt_wait
    table_queue = TableQueueEndpoints(intake, ports.reading, ring, longest_wait=wait)
    api.offer("table queue", Access.TENANT, table_queue.endpoints())


def _add_for_administrators(api: "_Api", office: Office, ring: KeyRing) -> None:
    ports, whose = office.backend, AnyTenants(ring, office.backend.tenants)
    storage, presets = office.settings.storage, office.settings.presets
    for tag, endpoints in {
        "tenants": TenantEndpoints(ports.tenants, ring, presets=presets).endpoints(),
        "keys": KeyEndpoints(ports.keys, ports.tenants, ring).endpoints(),
        "templates of a tenant": TemplateEndpoints(
            ports.templates,
            whose,
            prefix=_ADMIN_TENANT,
            limits=storage.template_limits,
            presets=presets,
            previews=PerMinute(0),
        ).endpoints(),
        "recipients of a tenant": RecipientEndpoints(
            ports.recipients, whose, prefix=_ADMIN_TENANT
        ).endpoints(),
        "suppressions of a tenant": SuppressionEndpoints(
            ports.suppressions, whose, prefix=_ADMIN_TENANT, most=storage.suppressions
        ).endpoints(),
        "messages": MessageEndpoints(ports, ring).endpoints(),
        "dead letters": DeadLetterEndpoints(ports, ring, office.settings.sending_rules).endpoints(),
        "fairness": FairnessEndpoints(ports.tenants, ring).endpoints(),
        "metrics": MetricsEndpoints(office.metrics, ring).endpoints(),
        "stats": StatsEndpoints(ports, ring).endpoints(),
    }.items():
        api.offer(tag, Access.ADMINISTRATOR, endpoints)


class _Api(FastAPI):
    """FastAPI that knows a short way, and documents what a lean route reads by itself."""

    def __init__(self, *, tally: Tally, **options: Any) -> None:  # noqa: ANN401 - FastAPI's own
        super().__init__(**options)
        self._offered: list[Endpoint] = []
        self._tally = tally
        self._express: Express | None = None  # made when all endpoints are there
        self._openapi: bytes | memoryview | None = None
        self._page: bytes | None = None
        self.router.route_class = LeanRoute
        self.router.redirect_slashes = False  # a moved POST loses its body with many clients
        self.add_middleware(Envelope, tally=tally)
        self.add_exception_handler(HTTPException, answer_http_error)

    def offer(self, tag: str, access: Access, endpoints: Iterable[Endpoint]) -> None:
        """Put the endpoints under one heading."""
        for each in endpoints:
            add_endpoint(self, each, tag=tag, access=access)
            self._offered.append(each)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, on the short way if it can go there."""
        if self._express is None:
            routes = [route for route in self.routes if isinstance(route, LeanRoute)]
            self._express = Express(routes, tally=self._tally, otherwise=super().__call__)
        scope["app"] = self
        await self._express(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            document = super().openapi()
            document["components"]["schemas"] = schemas_of(self._offered)
        return super().openapi()

    async def show_openapi(self, _: Request) -> Response:
        """Answer with the document for machines; anybody may ask for it, so its text is made once."""
        if self._openapi is None:
            self._openapi = JSONResponse(self.openapi()).body
        return Response(self._openapi, media_type=JSONResponse.media_type)

    async def show_docs(self, _: Request) -> Response:
        """Answer with the page for people; its text is made once."""
        if self._page is None:
            self._page = page_of(self.openapi()).encode()
        return HTMLResponse(self._page, headers=SAFE)

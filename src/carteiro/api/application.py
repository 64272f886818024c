"""The ASGI application: all endpoints, and their documentation."""

from functools import partial, wraps
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Receive, Scope, Send

from carteiro.api.admin.alerts import AlertEndpoints
from carteiro.api.admin.audit import AuditEndpoints
from carteiro.api.admin.dead_letters import DeadLetterEndpoints
from carteiro.api.admin.failures import FailureEndpoints
from carteiro.api.admin.fairness import FairnessEndpoints
from carteiro.api.admin.keys import KeyEndpoints
from carteiro.api.admin.messages import MessageEndpoints
from carteiro.api.admin.redrives import RedriveEndpoints
from carteiro.api.admin.stats import StatsEndpoints
from carteiro.api.admin.tenants import TenantEndpoints
from carteiro.api.batch import BatchIntake
from carteiro.api.docs_page import SAFE, page_of
from carteiro.api.emails import Emails
from carteiro.api.endpoint import Access, Call, Endpoint, Endpoints, add_endpoint, schemas_of
from carteiro.api.envelope import Envelope, answer_http_error
from carteiro.api.express import Express
from carteiro.api.feedback import FeedbackEndpoints
from carteiro.api.health import HealthChecks
from carteiro.api.in_flight import InFlight, PerMinute
from carteiro.api.intake import Intake, Office
from carteiro.api.key_ring import KeyRing
from carteiro.api.kpis import KpiEndpoints, OwnKpiEndpoints
from carteiro.api.lean import LeanRoute
from carteiro.api.metrics import MetricsEndpoints
from carteiro.api.networks import Networks
from carteiro.api.recipients import RecipientEndpoints
from carteiro.api.rights import RIGHTS, check_right
from carteiro.api.suppressions import SuppressionEndpoints
from carteiro.api.table_queue import TableQueueEndpoints
from carteiro.api.templates import TemplateEndpoints
from carteiro.api.tracing import traced
from carteiro.api.unsubscribe import UnsubscribeEndpoints
from carteiro.api.whose import Whose, found_tenant
from carteiro.config.provider_spec import Fetch
from carteiro.email.message import MAX_REQUEST_BYTES
from carteiro.model import Tenant, TenantId
from carteiro.observability.metrics import Tally
from carteiro.observability.readiness import Role
from carteiro.observability.tracing import Tracing
from carteiro.runtime.fetching import fetch


def create_api(office: Office, *, works: bool = False, fetch: Fetch = fetch) -> FastAPI:
    """The API of one open post office; it commits an e-mail durably before it answers.

    ``fetch`` downloads what feedback of providers needs, such as the certificates of its signatures.
    ``works``: the process is a worker, too, and reports the readiness of both roles.
    """
    bounds = office.settings.api
    proxies = Networks(bounds.trusted_proxies.split())
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
    changes = PerMinute[TenantId](bounds.changes_per_minute)
    api = _Api(
        title="Carteiro",
        summary="Delivered, or you know exactly why not.",
        version="1",
        docs_url=None,  # FastAPI's pages load scripts from elsewhere; ours loads nothing
        redoc_url=None,
        openapi_url=None,
        tally=office.tally,
        ring=ring,
        changes=changes,
        tracing=office.tracing,
    )
    api.add_api_route("/docs", api.show_docs, methods=["GET", "HEAD"], include_in_schema=False)
    api.add_route("/openapi.json", api.show_openapi, include_in_schema=False)
    api.state.body_timeout = bounds.request_timeout
    api.state.proxies = proxies
    api.state.ring = ring
    api.state.changes = changes
    unchecked = bounds.max_unchecked_body_bytes
    api.state.unchecked = InFlight(
        most_requests=bounds.max_connections,
        most_bytes=max(unchecked // 4, MAX_REQUEST_BYTES),
        most_together=unchecked,
    )
    # On the application itself: a router that is included costs every request about 10 µs more.
    _add_for_tenants(api, office, ring, changes)
    _add_for_administrators(api, office, ring)
    feedback = FeedbackEndpoints(
        office.settings, office.backend.tracking, office.tally, fetch=fetch
    )
    api.offer(Access.ANYONE, "feedback", feedback)
    links = UnsubscribeEndpoints(office.settings, office.backend.tracking, office.tally)
    api.offer(Access.ANYONE, "unsubscribe", links)
    roles = (Role.API, Role.WORKER) if works else (Role.API,)
    api.offer(Access.ANYONE, "health", HealthChecks(office.backend, roles))
    return api


def _add_for_tenants(
    api: "_Api", office: Office, ring: KeyRing, changes: PerMinute[TenantId]
) -> None:
    ports, settings, intake = office.backend, office.settings, Intake(office)
    previews = PerMinute[TenantId](settings.api.previews_per_minute)
    suppressed = PerMinute[TenantId](settings.api.suppression_changes_per_minute)

    async def counted_tenant(request: Request) -> Tenant:
        tenant = await ring.tenant_of(request)
        is_erasing = request.method == "POST" and request.url.path.endswith("/erase")
        if is_erasing or request.method in {"PUT", "DELETE"}:
            changes.count(tenant.id, "changes")
        return tenant

    wait, own = settings.api.attempt_wait, Whose("/v1", ring.tenant_of)
    counted = Whose("/v1", counted_tenant)
    offer = partial(api.offer, Access.TENANT)
    offer("e-mail", Emails(intake, ports.store, ports.reading, ring))
    offer("e-mail", BatchIntake(intake, ring))
    for tag, endpoints in _of_a_tenant(office, counted, previews, own, suppressed).items():
        offer(tag, endpoints)
    offer("key figures", OwnKpiEndpoints(ports.rollups, own))
    offer("table queue", TableQueueEndpoints(intake, ports.reading, ring, longest_wait=wait))


def _add_for_administrators(api: "_Api", office: Office, ring: KeyRing) -> None:
    ports, settings = office.backend, office.settings
    offer = partial(api.offer, Access.ADMINISTRATOR)
    offer("tenants", TenantEndpoints(ports.tenants, ring, presets=settings.presets))
    offer("keys", KeyEndpoints(ports.keys, ports.tenants, ring))
    any_tenants = Whose("/admin/v1/tenants/{tenant}", partial(found_tenant, ports.tenants))
    unlimited = PerMinute[TenantId](0)
    for tag, endpoints in _of_a_tenant(
        office, any_tenants, unlimited, any_tenants, unlimited
    ).items():
        offer(f"{tag} of a tenant", endpoints)
    offer("messages", MessageEndpoints(ports, settings.automatic_plan))
    rules, plan = settings.sending_rules, settings.automatic_plan
    offer("dead letters", DeadLetterEndpoints(ports, rules, plan))
    offer("redrives", RedriveEndpoints(ports))
    offer("fairness", FairnessEndpoints(ports.tenants))
    offer("alerts", AlertEndpoints(ports.alerts, settings.alert_rules()))
    offer("audit", AuditEndpoints(ports.audit))
    offer("failures", FailureEndpoints(ports.failures))
    offer("metrics", MetricsEndpoints(office.metrics))
    offer("stats", StatsEndpoints(ports))
    offer("key figures of all", KpiEndpoints(ports))


def _of_a_tenant(
    office: Office,
    whose: Whose,
    previews: PerMinute[TenantId],
    whose_suppressions: Whose,
    suppressed: PerMinute[TenantId],
) -> dict[str, Endpoints]:
    """Endpoints that a tenant has for its own data, and administrators for any tenant's."""
    ports, settings = office.backend, office.settings
    storage, presets = settings.storage, settings.presets
    templates = TemplateEndpoints(
        *(ports.templates, whose, storage.template_limits, presets, previews, settings.one_click)
    )
    return {
        "templates": templates,
        "recipients": RecipientEndpoints(ports.recipients, whose),
        "suppressions": SuppressionEndpoints(
            ports.suppressions, whose_suppressions, storage.suppressions, suppressed
        ),
    }


class _Api(FastAPI):
    """FastAPI with a fast path, which also documents what a lean route reads by itself."""

    def __init__(
        self,
        *,
        tally: Tally,
        ring: KeyRing,
        changes: PerMinute[TenantId],
        tracing: Tracing | None,
        **options: Any,  # noqa: ANN401 - FastAPI's own
    ) -> None:
        super().__init__(**options)
        self._offered: list[Endpoint] = []
        self._tally = tally
        self._ring = ring
        self._changes = changes
        self._tracing = tracing
        self._express: Express | None = None  # made after all endpoints were added
        self._openapi: bytes | memoryview | None = None
        self._page: bytes | None = None
        self.router.route_class = LeanRoute
        self.router.redirect_slashes = False  # a moved POST loses its body with many clients
        self.add_middleware(Envelope, tally=tally)
        self.add_exception_handler(HTTPException, answer_http_error)

    def offer(self, access: Access, tag: str, endpoints: Endpoints) -> None:
        """Put the endpoints under one heading; those of administrators are opened by their token alone."""
        for endpoint, bare in endpoints.endpoints():
            call = bare
            if endpoint.is_traced and self._tracing is not None:
                call = traced(bare, self._tracing, method=endpoint.method, route=endpoint.path)
            is_open = access is not Access.ADMINISTRATOR
            admitted = call if is_open else self._for_administrators(endpoint, call)
            add_endpoint(self, endpoint, admitted, tag=tag, access=access)
            self._offered.append(endpoint)

    def _for_administrators(self, endpoint: Endpoint, call: Call) -> Call:
        right = RIGHTS[f"{endpoint.method} {endpoint.path}"]

        @wraps(call)
        async def admitted(request: Request) -> Response:
            token = await self._ring.admit_administrator(request)
            check_right(right, token, request)
            if token.tenant is not None and request.method != "GET":
                self._changes.count(token.tenant, "changes")
            return await call(request)

        return admitted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, on the fast path where possible."""
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
        """Answer with the document for machines; it is public, so its text is made once."""
        if self._openapi is None:
            self._openapi = JSONResponse(self.openapi()).body
        return Response(self._openapi, media_type=JSONResponse.media_type)

    async def show_docs(self, _: Request) -> Response:
        """Answer with the page for people; its text is made once."""
        if self._page is None:
            self._page = page_of(self.openapi()).encode()
        return HTMLResponse(self._page, headers=SAFE)

"""The console as a part of the API process: its pages, the one place that checks every request, and its headers."""

from collections.abc import Mapping
from typing import Final

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from carteiro.api.envelope import request_id_of
from carteiro.api.in_flight import SHARE, PerMinute
from carteiro.api.intake import Office
from carteiro.api.key_ring import KeyRing
from carteiro.api.networks import Networks
from carteiro.api.refusal import Refusal, refusal_of
from carteiro.api.rights import check_right
from carteiro.console.assets import show_asset
from carteiro.console.cookies import is_same_origin
from carteiro.console.door import Door
from carteiro.console.hub import Hub
from carteiro.console.live import LivePages
from carteiro.console.overview import Overviews
from carteiro.console.page import Change, Handler, Pages, Show
from carteiro.console.pages.alerts import AlertPages
from carteiro.console.pages.audit import AuditPages, newest_change
from carteiro.console.pages.dead_letters import DeadLetterPages
from carteiro.console.pages.entrance import EntrancePages
from carteiro.console.pages.failures import FailurePages
from carteiro.console.pages.inbox import InboxPages, offer_mails
from carteiro.console.pages.message import MessagePages
from carteiro.console.pages.message_bulk import MessageBulkPages
from carteiro.console.pages.messages import MessageSearchPages
from carteiro.console.pages.overview import OverviewPages, offer_overviews
from carteiro.console.pages.providers import ProviderPages
from carteiro.console.pages.redrives import RedrivePages, offer_progress
from carteiro.console.pages.settings import SettingPages
from carteiro.console.pages.suppressions import SuppressionPages
from carteiro.console.pages.templates import TemplatePages
from carteiro.console.pages.tenants import TenantPages
from carteiro.console.rendering import ROOT
from carteiro.console.visit import Visit
from carteiro.model import TenantId

# Nothing is loaded from elsewhere, nothing runs that is not a file of ours, and no other page may show one of these.
_SAFE: Final[Mapping[str, str]] = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # not no-referrer: with it, browsers send forms without their origin
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_KNOWN_STATUSES = {400, 401, 403, 404, 405, 408, 409, 413, 422, 429, 500, 503}


def add_console(api: FastAPI, office: Office) -> "Console":
    """Put the console into the API's process, at ``/console``."""
    state = api.state
    console = Console(office, ring=state.ring, proxies=state.proxies, changes=state.changes)
    api.mount(ROOT, console)
    api.add_route(ROOT, _to_slash, include_in_schema=False)
    return console


async def _to_slash(_: Request) -> Response:
    return RedirectResponse(f"{ROOT}/", 308)


class Console:
    """An ASGI application of all pages."""

    def __init__(
        self, office: Office, *, ring: KeyRing, proxies: Networks, changes: PerMinute[TenantId]
    ) -> None:
        self.proxies = proxies
        self.ring = ring
        self._changes = changes
        self.door = Door(office, ring, proxies)
        self.hub = Hub()
        self.office = office
        self._shown: dict[tuple[str, str], Show] = {}
        routes = [Route("/static/{name}", self._show_asset)]
        for pages in self._pages():
            routes += [self._route(each, handler) for each, handler in pages.pages()]
        self._app: ASGIApp = Router(routes, redirect_slashes=False, default=self._lost)

    def _pages(self) -> list[Pages]:
        """All pages, in the order of the menu; a new module gets a line here."""
        office, ports = self.office, self.office.backend
        self.hub.offer(newest_change(ports.audit))
        offer_mails(self.hub, ports.inbox)
        offer_progress(self.hub, ports.redrives)
        overviews = Overviews(ports)
        offer_overviews(self.hub, overviews)
        return [
            OverviewPages(office, overviews),
            FailurePages(ports.failures),
            DeadLetterPages(ports),
            RedrivePages(ports),
            MessageSearchPages(ports),
            MessageBulkPages(ports),
            MessagePages(ports, office.settings),
            TenantPages(office, self.ring),
            ProviderPages(office),
            TemplatePages(office),
            SuppressionPages(office),
            SettingPages(office.settings, ports.tenants),
            AlertPages(ports.alerts, office.settings.alert_rules()),
            AuditPages(ports.audit),
            InboxPages(ports.inbox),
            EntrancePages(self.door, office.settings.console),
            LivePages(self.hub),
        ]

    @property
    def shown(self) -> Mapping[tuple[str, str], Show]:
        """All pages, by method and path."""
        return self._shown

    def is_open_to(self, path: str, visit: Visit) -> bool:
        """True if there is such a page without parameters, and the viewer may see it."""
        shown = self._shown.get(("GET", path))
        return shown is not None and shown.right is not None and visit.has(shown.right)

    def close(self) -> None:
        """End all streams."""
        self.hub.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                safe = [
                    (n.encode(), v.encode()) for n, v in _SAFE.items() if n.encode() not in given
                ]
                message = {**message, "headers": [*message["headers"], *safe]}
            await send(message)

        scope.pop("route", None)
        try:
            await self._app(scope, receive, guarded)
        except HTTPException as error:  # of the router, before anything was sent: another method
            request = Request(scope, receive)
            refusal = Refusal(error.status_code, "", headers=dict(error.headers or {}))
            await self._failed(Visit(request, None, self), refusal)(scope, receive, guarded)

    def _route(self, shown: Show, handler: Handler) -> Route:
        shown.right  # noqa: B018 - a page without a row in the table of rights is not offered
        self._shown[shown.method, shown.path] = shown
        methods = ["GET", "HEAD"] if shown.method == "GET" else [shown.method]

        async def answer(request: Request) -> Response:
            request.scope["route"] = _Counted(f"{ROOT}/{shown.path}")
            return await self._answer(request, shown, handler)

        return Route(f"/{shown.path}", answer, methods=methods)

    async def _answer(self, request: Request, shown: Show, handler: Handler) -> Response:
        visit = Visit(request, None, self)
        try:
            visit.viewer = await self.door.viewer_of(request)
            visit.check_filters()
            if isinstance(shown, Change):
                self._check_origin(visit)
            if (right := shown.right) is not None:
                if visit.viewer is None:
                    return self._to_entrance(visit)
                await self.door.admit(visit.viewer, request)
                token = visit.viewer.token
                check_right(right, token, request)
                if token.tenant is not None and isinstance(shown, Change):
                    self._changes.count(token.tenant, "changes")
            if isinstance(shown, Change):
                await visit.read_form()
                if shown.confirms and visit.form.get("confirmed") != "yes":
                    return visit.page("confirm.html", question=shown.confirms)
            return await handler(visit)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001 - shown on a page
            return self._failed(visit, refusal_of(error, request_id_of(request)))

    def _check_origin(self, visit: Visit) -> None:
        if not is_same_origin(visit.request, self.proxies):
            raise Refusal(403, visit.words("shell.other_origin"))

    def _to_entrance(self, visit: Visit) -> Response:
        if visit.request.method not in {"GET", "HEAD"}:
            return self._failed(visit, Refusal(401, ""))
        if (
            visit.request.headers.get("sec-fetch-dest") == "empty"
        ):  # the script, which then loads the page
            return Response(status_code=401)
        return RedirectResponse(visit.link("sign-in", next=visit.address), 303)

    @staticmethod
    def _failed(visit: Visit, refusal: Refusal) -> Response:
        share = visit.request.scope.pop(SHARE, None)
        if share is not None:
            share.end()
        known = refusal.status if refusal.status in _KNOWN_STATUSES else 500
        response = visit.page("error.html", status=refusal.status, known=known, refusal=refusal)
        for name, text in refusal.headers.items():
            response.headers[name] = text
        return response

    async def _show_asset(self, request: Request) -> Response:
        found = show_asset(request)
        return found if found is not None else await self._not_found(request)

    async def _lost(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._not_found(Request(scope, receive))
        await response(scope, receive, send)

    async def _not_found(self, request: Request) -> Response:
        visit = Visit(request, None, self)
        try:
            visit.viewer = await self.door.viewer_of(request)
        except Exception as error:  # noqa: BLE001 - shown on a page
            return self._failed(visit, refusal_of(error, request_id_of(request)))
        return self._failed(visit, Refusal(404, visit.words("shell.no_page")))


class _Counted:
    """The name of a page in the metrics of requests."""

    def __init__(self, path: str) -> None:
        self.path = path

"""Endpoints of templates: a tenant's own under ``/v1``, any tenant's under ``/admin/v1``."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.documents import Document, Moment
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.in_flight import PerMinute
from carteiro.api.reading import Question, read_query, read_question
from carteiro.api.refusal import found, not_found, stored
from carteiro.api.whose import Whose
from carteiro.email.templates.rendering import check_template, off_the_loop, render
from carteiro.model import NewTemplate, Template, TemplateLimits, TemplateSummary, TenantId
from carteiro.policy.retry import PRESET_RULE
from carteiro.policy.unsubscribe import OneClick
from carteiro.ports import Templates

_ONE = "/templates/{type}"
_LARGEST_VERSION = 2**31


class TemplateView(Document):
    """One version of a template."""

    type: str
    version: int
    subject: str
    html: str | None
    text: str | None
    retry_preset: str | None
    one_click_unsubscribe: bool
    automatic_redrive: bool
    created_at: Moment
    deleted_at: Moment | None


class TemplateSummaryView(Document):
    """One version of a template, without its html and text."""

    type: str
    version: int
    subject: str
    has_html: bool
    has_text: bool
    retry_preset: str | None
    one_click_unsubscribe: bool
    automatic_redrive: bool
    created_at: Moment
    deleted_at: Moment | None


class TemplateList(Document):
    """Templates, or the versions of one."""

    items: list[TemplateSummaryView]


class TemplateDocument(Question):
    """A template to write: a subject, and html or text or both."""

    subject: str
    html: str | None = None
    text: str | None = None
    retry_preset: str | None = Field(default=None, description=PRESET_RULE)
    one_click_unsubscribe: bool = Field(
        default=False,
        strict=True,
        description="Each mail has a link in its headers that unsubscribes its recipient with one click (RFC 8058)."
        " Needs ``unsubscribe.url`` in the settings.",
    )
    automatic_redrive: bool = Field(
        default=True,
        strict=True,
        description="Redrive its dead letters automatically after an outage; false if they are useless when late.",
    )


class VersionQuestion(Question):
    """A version; by default the newest."""

    version: int | None = Field(default=None, ge=1, le=_LARGEST_VERSION)


class PreviewQuestion(Question):
    """Variables, and a version; by default the newest."""

    variables: dict[str, Any] = Field(default_factory=dict)
    version: int | None = Field(default=None, ge=1, le=_LARGEST_VERSION)


class Preview(Document):
    """A rendered template."""

    subject: str
    html: str | None
    text: str | None


@dataclass
class TemplateEndpoints(Endpoints):
    """Endpoints for the templates of the tenant that ``whose`` finds."""

    _templates: Templates
    _whose: Whose
    _limits: TemplateLimits
    _presets: Collection[str]
    _previews: PerMinute[TenantId]
    _offer: OneClick | None

    def __post_init__(self) -> None:
        """Find where they belong."""
        self.prefix = self._whose.prefix

    @Endpoint("GET", "/templates", "List templates", TemplateList)
    async def list(self, request: Request) -> Response:
        """The newest version of each type, by type, without html and text; at most 1,000."""
        tenant = await self._whose.tenant_of(request)
        return _list(await self._templates.list(tenant))

    @Endpoint("GET", _ONE, "Look at a template", TemplateView, query=VersionQuestion)
    async def show(self, request: Request) -> Response:
        """The newest version, or the given one, also after a delete."""
        tenant = await self._whose.tenant_of(request)
        asked = read_query(request, VersionQuestion)
        found = await self._found(tenant, request, asked.version)
        return TemplateView.of(found).as_response(nulls=True)

    @Endpoint("PUT", _ONE, "Write a template", TemplateView, reads=TemplateDocument)
    async def put(self, request: Request) -> Response:
        """Store a new version; messages that were accepted before keep theirs.

        Forbidden markup, such as a script or an event handler, is 422.

        The settings of ``[storage]`` limit the storage. To make room, deleted types and then older versions are
        removed; if that is not enough, it is 422 ``STORAGE_LIMIT``.
        """
        tenant = await self._whose.tenant_of(request)
        asked = await read_question(request, TemplateDocument)
        new = NewTemplate(
            tenant=tenant,
            type=request.path_params["type"],
            subject=asked.subject,
            html=asked.html,
            text=asked.text,
            retry_preset=asked.retry_preset,
            one_click_unsubscribe=asked.one_click_unsubscribe,
            automatic_redrive=asked.automatic_redrive,
        )
        check = partial(check_template, new, presets=self._presets, offer=self._offer)
        await off_the_loop(check, tenant=tenant)
        made = await self._templates.define(new, limits=self._limits)
        return TemplateView.of(stored(made)).as_response(nulls=True)

    @Endpoint("DELETE", _ONE, "Delete a template", status=204)
    async def delete(self, request: Request) -> Response:
        """Delete the type; messages that were accepted before are still sent."""
        tenant = await self._whose.tenant_of(request)
        if not await self._templates.delete(tenant, request.path_params["type"]):
            raise not_found("template")
        return Response(status_code=204)

    @Endpoint("GET", f"{_ONE}/versions", "List the versions of a template", TemplateList)
    async def versions(self, request: Request) -> Response:
        """The 100 newest versions, newest first, without html and text."""
        tenant = await self._whose.tenant_of(request)
        versions = await self._templates.versions(tenant, request.path_params["type"])
        if not versions:
            raise not_found("template")
        return _list(versions)

    @Endpoint("POST", f"{_ONE}/preview", "Preview a template", Preview, reads=PreviewQuestion)
    async def preview(self, request: Request) -> Response:
        """Render a template; a missing variable is 422. Limited by ``api.previews_per_minute``."""
        tenant = await self._whose.tenant_of(request)
        self._previews.count(tenant, "previews")
        asked = await read_question(request, PreviewQuestion)
        template = await self._found(tenant, request, asked.version)
        shown = await off_the_loop(partial(render, template, asked.variables), tenant=tenant)
        return Preview.of(shown).as_response(nulls=True)

    async def _found(self, tenant: TenantId, request: Request, version: int | None) -> Template:
        type = request.path_params["type"]
        return found(await self._templates.find(tenant, type, version=version), "template")


def _list(templates: Iterable[TemplateSummary]) -> Response:
    items = [TemplateSummaryView.of(each) for each in templates]
    return TemplateList(items=items).as_response(nulls=True)

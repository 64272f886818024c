"""Templates: their types, and one with its versions, its differences, a preview, and a test send."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import orjson
from starlette.responses import Response

from carteiro.api.envelope import request_id_of
from carteiro.api.intake import Intake, Office, refused
from carteiro.api.refusal import Refusal, bad_value, found
from carteiro.api.whose import found_tenant
from carteiro.console.comparing import differing
from carteiro.console.listing import PAGE_ROWS, tenant_asked_for, text_in
from carteiro.console.mail import mail_frame, shown_mail
from carteiro.console.page import Change, Pages, Show
from carteiro.console.visit import Visit
from carteiro.email.message import Email, read_email
from carteiro.email.submission import Submission
from carteiro.email.templates.rendering import off_the_loop, render
from carteiro.errors import FieldError, InvalidMessage
from carteiro.model import Accepted, MessageId, Replayed, Template, TenantId

_ONE: Final = "/admin/v1/tenants/{tenant}/templates/{type}"
_NOBODY = "preview@example.com"
_MOST_SHOWN = 64 * 1024  # characters of a source
_MOST_LINES, _LONGEST_LINE = (
    500,
    500,
)  # of a source that is compared: the time grows with the square
_LONGEST_VARIABLES = 4000


class TemplatePages(Pages):
    """Pages of templates."""

    def __init__(self, office: Office) -> None:
        self._office = office
        self._templates = office.backend.templates
        self._tenants = office.backend.tenants

    @Show("templates", needs="GET /admin/v1/tenants/{tenant}/templates")
    async def list(self, visit: Visit) -> Response:
        """The types of one tenant."""
        tenant = await tenant_asked_for(self._tenants, visit, text_in(visit, "tenant"))
        part = (text_in(visit, "type") or "").lower()
        every = [] if tenant is None else await self._templates.list(tenant)
        matching = [each for each in every if part in each.type.lower()]
        rows = matching[:PAGE_ROWS]
        return visit.page("templates.html", tenant=tenant, rows=rows, count=len(matching))

    @Show("templates/{tenant}/{type}", needs=f"GET {_ONE}")
    async def show(self, visit: Visit) -> Response:
        """One version, its difference from another, and its preview."""
        template = await self._shown(visit)
        versions = await self._templates.versions(template.tenant, template.type)
        older = [each.version for each in versions if each.version < template.version]
        against = _version_in(visit, "against") or (older[0] if older else None)
        other = None
        if against is not None:
            other = await self._templates.find(template.tenant, template.type, version=against)
        email, faults = await self._preview(visit, template)
        mail = email and shown_mail(visit, email, message=MessageId("preview"), revision=1)
        return visit.page(
            "template.html",
            shown=template,
            versions=versions[:PAGE_ROWS],
            other=other,
            differences=await asyncio.to_thread(_differences, other, template),
            mail=mail,
            faults=faults,
            variables=visit.query.get("variables", ""),
            most=_MOST_SHOWN,
        )

    @Show("templates/{tenant}/{type}/mail", needs=f"GET {_ONE}")
    async def mail(self, visit: Visit) -> Response:
        """The HTML of the preview, for a frame."""
        template = await self._shown(visit)
        email, _ = await self._preview(visit, template)
        return mail_frame(visit, email, page=_page_of(template.tenant, template.type))

    @Change("templates/{tenant}/{type}/send", needs=f"PUT {_ONE}")
    async def send(self, visit: Visit) -> Response:
        """Send a mail made of the newest version, as the tenant itself would; it counts against its limits."""
        tenant = await found_tenant(self._tenants, visit.request)
        if tenant.disabled:
            raise Refusal(409, visit.words("templates.tenant_disabled"))
        mail = {
            "to": visit.form.get("to", "").strip(),
            "template": {
                "type": visit.path["type"],
                "variables": _variables(visit.form.get("variables", "")),
            },
            "tags": ["test"],
        }
        try:
            email = read_email(orjson.dumps(mail))
        except orjson.JSONEncodeError:  # it reads deeper nests than it writes
            raise _bad_variables() from None
        intake = Intake(self._office)
        answer = await intake.accepting.one(
            Submission(email, tenant, request_id_of(visit.request), limits=intake.limits_of(tenant))
        )
        if not isinstance(answer, (Accepted, Replayed)):
            raise refused(answer)
        return visit.to(
            _page_of(tenant.id, visit.path["type"]), flash="templates.sent_now", to=email.to
        )

    async def _shown(self, visit: Visit) -> Template:
        tenant = (await found_tenant(self._tenants, visit.request)).id
        type_, version = visit.path["type"], _version_in(visit, "version")
        return found(await self._templates.find(tenant, type_, version=version), "template")

    @staticmethod
    async def _preview(
        visit: Visit, template: Template
    ) -> tuple[Email | None, Sequence[FieldError]]:
        """The mail of this version with the variables in the address; else the faults."""
        try:
            variables = _variables(visit.query.get("variables", ""))
            work = partial(render, template, variables)
            made = await off_the_loop(work, tenant=template.tenant)
        except InvalidMessage as error:
            return None, error.fields
        return Email(to=_NOBODY, subject=made.subject, html=made.html, text=made.text), []


def _page_of(tenant: TenantId, type_: str) -> str:
    return f"templates/{quote(tenant, safe='')}/{quote(type_, safe='')}"


def _version_in(visit: Visit, name: str) -> int | None:
    given = visit.query.get(name)
    if given is None:
        return None
    if not given.isdecimal() or not 1 <= len(given) <= len(str(2**31)) - 1:
        raise bad_value(name, "should be the number of a version")
    return int(given) or None


def _variables(text: str) -> dict[str, Any]:
    """The variables as a JSON object; none if it is empty."""
    if not text.strip():
        return {}
    try:
        given = orjson.loads(text) if len(text) <= _LONGEST_VARIABLES else None
    except orjson.JSONDecodeError:
        given = None
    if not isinstance(given, dict):
        raise _bad_variables()
    return given


def _bad_variables() -> InvalidMessage:
    fault = f'should be a JSON object such as {{"name": "Ana"}}, of at most {_LONGEST_VARIABLES} characters'
    return InvalidMessage([FieldError("variables", fault)])


def _differences(before: Template | None, after: Template) -> list[tuple[str, str]]:
    """The lines in which the sources differ."""
    if before is None:
        return []
    return list(differing(_lines(before), _lines(after)))


def _lines(template: Template) -> list[str]:
    parts = (template.subject, template.html or "", template.text or "")
    whole = "\n".join(each[: _MOST_LINES * _LONGEST_LINE] for each in parts)
    return [each[:_LONGEST_LINE] for each in whole.splitlines()[:_MOST_LINES]]

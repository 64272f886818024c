"""Endpoint of audit rows: who changed what."""

from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.documents import Document, Moment, PageDocument
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.key_ring import token_of, within
from carteiro.api.reading import PageQuestion, Time, read_query
from carteiro.model import AuditFilter, AuditRow, Via
from carteiro.ports import Audit

_LONGEST = 255


class AuditQuestion(PageQuestion):
    """A selection of audit rows; a field that is not given does not restrict it."""

    company_id: str | None = Field(default=None, max_length=_LONGEST)
    who: str | None = Field(default=None, max_length=_LONGEST)
    action: str | None = Field(default=None, max_length=_LONGEST)
    kind: str | None = Field(default=None, max_length=_LONGEST)
    object: str | None = Field(default=None, max_length=_LONGEST)
    since: Time | None = None


class AuditRowView(Document):
    """One change; ``companyId`` null: it is about the whole installation.

    ``who`` is the name of a token or key, or a user of the host ``origin``; ``keyId`` null: there was no key.
    ``before`` and ``after`` have the changed fields.
    """

    id: str
    at: Moment
    via: Via
    who: str
    key_id: str | None
    origin: str
    action: str
    kind: str
    object: str
    company_id: str | None
    before: dict[str, Any]
    after: dict[str, Any]


class AuditPage(PageDocument):
    """Matching audit rows, newest first."""

    items: list[AuditRowView]


class AuditEndpoints(Endpoints):
    """Endpoint of administrators for audit rows. Nothing changes or deletes them."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    @Endpoint("GET", "/admin/v1/audit", "See who changed what", AuditPage, query=AuditQuestion)
    async def list(self, request: Request) -> Response:
        """Matching audit rows, newest first; ``nextCursor`` leads to the next page."""
        asked = read_query(request, AuditQuestion)
        names = asked.model_dump(include={"who", "action", "kind", "object", "since"})
        is_own = token_of(request).tenant is not None
        wanted = AuditFilter(tenant=within(request, asked.company_id), is_own=is_own, **names)
        page = await self._audit.list(wanted, cursor=asked.after, limit=asked.limit)
        return AuditPage.response(page, _view)


def _view(row: AuditRow) -> AuditRowView:
    return AuditRowView.of(row, company_id=row.tenant)

"""The audit page: who changed what, newest first."""

from collections.abc import Awaitable, Callable

from starlette.responses import Response

from carteiro.console.hub import Topic
from carteiro.console.listing import PAGE_ROWS, chips, cursor_in, text_in, time_in
from carteiro.console.page import Pages, Show
from carteiro.console.visit import Visit
from carteiro.model import AuditFilter, AuditRow, TenantId
from carteiro.ports import Audit

_NEEDS = "GET /admin/v1/audit"
_FILTERS = ("tenant", "who", "action", "kind", "object", "since")


class AuditPages(Pages):
    """The list of audit rows."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    @Show("audit", needs=_NEEDS)
    async def list(self, visit: Visit) -> Response:
        """Matching audit rows."""
        wanted = AuditFilter(
            tenant=visit.within(text_in(visit, "tenant")),
            who=text_in(visit, "who"),
            action=text_in(visit, "action"),
            kind=text_in(visit, "kind"),
            object=text_in(visit, "object"),
            since=time_in(visit, "since"),
            is_own=visit.within() is not None,
        )
        page = await self._audit.list(wanted, cursor=cursor_in(visit), limit=PAGE_ROWS)
        return visit.page("audit.html", page=page, chips=chips(visit, "audit", _FILTERS))


def newest_change(audit: Audit) -> Topic:
    """The newest audit row, live."""
    return Topic("audit", _NEEDS, _reader(audit), _shown)


def _reader(audit: Audit) -> Callable[[TenantId | None], Awaitable[AuditRow | None]]:
    async def read(tenant: TenantId | None) -> AuditRow | None:
        wanted = AuditFilter(tenant=tenant, is_own=tenant is not None)
        rows = (await audit.list(wanted, limit=1)).rows
        return rows[0] if rows else None

    return read


def _shown(row: AuditRow | None, visit: Visit) -> str:
    return visit.rendered("audit_newest.html", row=row)

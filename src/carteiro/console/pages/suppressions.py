"""Suppressions: addresses that a tenant must not write to."""

import pydantic
from starlette.responses import Response

from carteiro.api.intake import Office
from carteiro.api.refusal import found, not_found
from carteiro.api.suppressions import MOST_AT_ONCE, NewSuppressions, suppress
from carteiro.console.listing import PAGE_ROWS, cursor_in, tenant_asked_for, text_in
from carteiro.console.page import Change, Pages, Show
from carteiro.console.visit import Visit
from carteiro.email.message import plainly
from carteiro.model import TenantId

_PATH = "/admin/v1/tenants/{tenant}/suppressions"


class SuppressionPages(Pages):
    """The page of suppressions."""

    def __init__(self, office: Office) -> None:
        self._most = office.settings.storage.suppressions
        self._suppressions = office.backend.suppressions
        self._tenants = office.backend.tenants

    @Show("suppressions", needs=f"GET {_PATH}")
    async def list(self, visit: Visit) -> Response:
        """Suppressions of one tenant, newest first."""
        tenant = await tenant_asked_for(self._tenants, visit, text_in(visit, "tenant"))
        page = None
        if tenant is not None:
            page = await self._suppressions.list(
                tenant, email=text_in(visit, "email"), cursor=cursor_in(visit), limit=PAGE_ROWS
            )
        return visit.page("suppressions.html", tenant=tenant, page=page, most=MOST_AT_ONCE)

    @Change("suppressions/add", needs=f"PUT {_PATH}")
    async def add(self, visit: Visit) -> Response:
        """Suppress addresses, all or none."""
        tenant = await self._tenant_of(visit)
        try:
            asked = NewSuppressions(emails=tuple(visit.form.get("emails", "").split()))
        except pydantic.ValidationError as error:
            raise plainly(error) from None
        count = await suppress(self._suppressions, tenant, asked, most=self._most)
        return self._back(visit, tenant, "suppressions.added_now", count=count)

    @Change("suppressions/remove", needs=f"DELETE {_PATH}", confirms="suppressions.sure_remove")
    async def remove(self, visit: Visit) -> Response:
        """Write to an address again."""
        tenant, address = await self._tenant_of(visit), visit.form.get("email", "")
        if not await self._suppressions.remove([address], tenant=tenant):
            raise not_found("suppression")
        return self._back(visit, tenant, "suppressions.removed_now")

    async def _tenant_of(self, visit: Visit) -> TenantId:
        tenant = await tenant_asked_for(self._tenants, visit, visit.form.get("tenant"))
        return found(tenant, "tenant")

    @staticmethod
    def _back(visit: Visit, tenant: TenantId, flash: str, **values: object) -> Response:
        path = visit.link("suppressions", tenant=tenant).removeprefix(visit.link())
        return visit.to(path, flash=flash, **values)

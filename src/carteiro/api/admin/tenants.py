"""Endpoints of tenants: create, change, disable, pause and erase them."""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from pydantic import ConfigDict, FailFast, Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.documents import Document, PageDocument
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.erasing import ErasedDocument, erased_in_pages
from carteiro.api.key_ring import KeyRing
from carteiro.api.reading import PageQuestion, Question, read_query, read_question
from carteiro.api.refusal import Refusal, bad_value, found
from carteiro.api.whose import found_tenant
from carteiro.errors import DomainClaimed, FieldError, InvalidMessage, TierUnknown
from carteiro.model import HEAVIEST, LARGEST_CAP, LIGHTEST, ApiLimits, Tenant, TenantId
from carteiro.policy.names import LONGEST_NAME, NAME_RULE, is_name
from carteiro.policy.retry import PRESET_RULE, PRESETS
from carteiro.policy.tenancy import judge_tenant
from carteiro.ports import Tenants
from carteiro.runtime.domain_cache import refuse_others_sender

_LARGEST = 1_000_000_000  # more than anyone sends, less than any store counts to


class LimitsDocument(Document):
    """Rate limits of messages that are submitted over HTTP; null: no limit."""

    model_config = ConfigDict(strict=True)

    per_minute: int | None = Field(default=None, ge=0, le=_LARGEST)
    per_hour: int | None = Field(default=None, ge=0, le=_LARGEST)
    per_day: int | None = Field(default=None, ge=0, le=_LARGEST)


class TenantChange(Question):
    """The changes of a tenant; a field that is not given keeps its value."""

    name: str = Field(default="", max_length=LONGEST_NAME)
    tier: str | None = Field(default=None, max_length=LONGEST_NAME)
    weight: float | None = Field(default=None, ge=LIGHTEST, le=HEAVIEST, allow_inf_nan=False)
    cap: int | None = Field(default=None, ge=1, le=LARGEST_CAP)
    rate_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    paused: bool = False
    disabled: bool = False
    default_from: str | None = Field(default=None, max_length=320)
    from_domains: Annotated[tuple[str, ...], FailFast()] = Field(default=(), max_length=100)
    allowed_networks: Annotated[tuple[str, ...], FailFast()] = Field(default=(), max_length=1000)
    limits: LimitsDocument | None = None
    retry_preset: str | None = Field(default=None, description=PRESET_RULE)
    external_id_is_key: bool = False
    contact: str | None = Field(
        default=None, max_length=320, description="Address for notices about the tenant."
    )
    automatic_redrive: bool = Field(
        default=True, description="Redrive its dead letters automatically after an outage."
    )

    def made_of(self, tenant: Tenant, *, presets: Collection[str] = PRESETS) -> Tenant:
        """The tenant with these changes; `InvalidMessage` if it is not valid."""
        changes: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        if (limits := changes.get("limits")) is not None:
            changes["limits"] = ApiLimits(**limits.model_dump())
        changed = replace(tenant, **changes)
        if faults := judge_tenant(changed, presets=presets):
            raise InvalidMessage(
                [FieldError(_in_json(each.field), each.message) for each in faults]
            )
        return changed


class NewTenantDocument(TenantChange):
    """A tenant; a field that is not given has its default."""


class TenantView(Document):
    """A tenant with all its fields."""

    company_id: str
    name: str
    tier: str | None
    weight: float | None
    cap: int | None
    rate_per_second: float | None
    paused: bool
    disabled: bool
    default_from: str | None
    from_domains: list[str]
    allowed_networks: list[str]
    limits: LimitsDocument | None
    retry_preset: str | None
    external_id_is_key: bool
    contact: str | None
    automatic_redrive: bool


class TenantPage(PageDocument):
    """Tenants, by id."""

    items: list[TenantView]


class TenantEndpoints(Endpoints):
    """Endpoints of administrators for tenants."""

    prefix = "/admin/v1/tenants"

    def __init__(
        self, tenants: Tenants, keys: KeyRing, *, presets: Collection[str] = PRESETS
    ) -> None:
        self._tenants = tenants
        self._presets = presets
        self._keys = keys

    @Endpoint("GET", "", "List tenants", TenantPage, query=PageQuestion)
    async def list(self, request: Request) -> Response:
        """Tenants by id; ``nextCursor`` leads to the next page."""
        asked = read_query(request, PageQuestion)
        page = await self._tenants.list(cursor=asked.after, limit=asked.limit)
        return TenantPage.response(page, _view)

    @Endpoint("GET", "/{tenant}", "Look at a tenant", TenantView)
    async def show(self, request: Request) -> Response:
        """One tenant."""
        return _view(await found_tenant(self._tenants, request)).as_response(nulls=True)

    @Endpoint(
        "PUT",
        "/{tenant}",
        "Create or replace a tenant",
        TenantView,
        reads=NewTenantDocument,
        refuses=(409,),
    )
    async def put(self, request: Request) -> Response:
        """Create or replace the tenant; a change applies to its waiting messages at once."""
        name = request.path_params["tenant"]
        if not is_name(name):
            raise InvalidMessage([FieldError("tenant", NAME_RULE)])
        asked = await read_question(request, NewTenantDocument)
        new = asked.made_of(Tenant(TenantId(name)), presets=self._presets)
        [before] = await self._tenants.find([new.id])
        return _view(await write_tenant(self._tenants, self._keys, before, new)).as_response(
            nulls=True
        )

    @Endpoint(
        "PATCH", "/{tenant}", "Change a tenant", TenantView, reads=TenantChange, refuses=(409,)
    )
    async def change(self, request: Request) -> Response:
        """Change the given fields; a change applies to its waiting messages at once."""
        tenant = await found_tenant(self._tenants, request)
        asked = await read_question(request, TenantChange)
        changed = partial(asked.made_of, presets=self._presets)
        after = await write_tenant(self._tenants, self._keys, tenant, changed(tenant), changed)
        return _view(after).as_response(nulls=True)

    @Endpoint("POST", "/{tenant}/disable", "Disable a tenant", TenantView)
    async def disable(self, request: Request) -> Response:
        """Accept no more messages, refuse its keys, hold waiting messages."""
        return await self._switched(request, disabled=True)

    @Endpoint("POST", "/{tenant}/enable", "Enable a tenant", TenantView)
    async def enable(self, request: Request) -> Response:
        """Enable a disabled tenant."""
        return await self._switched(request, disabled=False)

    @Endpoint("POST", "/{tenant}/pause", "Pause a tenant", TenantView)
    async def pause(self, request: Request) -> Response:
        """Accept its messages, but send none until it is resumed."""
        return await self._switched(request, paused=True)

    @Endpoint("POST", "/{tenant}/resume", "Resume a tenant", TenantView)
    async def resume(self, request: Request) -> Response:
        """Send its waiting messages again."""
        return await self._switched(request, paused=False)

    @Endpoint("POST", "/{tenant}/erase", "Erase a tenant", ErasedDocument, also=202)
    async def erase(self, request: Request) -> Response:
        """Erase the tenant and all its data; 202 with ``hasMore``: repeat the request."""
        tenant = await found_tenant(self._tenants, request)
        erased = await erased_in_pages(lambda: self._tenants.erase(tenant.id))
        self._keys.forget()
        return found(erased, "tenant")

    async def _switched(self, request: Request, **switch: Any) -> Response:  # noqa: ANN401 - a field of a tenant
        tenant = await found_tenant(self._tenants, request)
        after = await switch_tenant(self._tenants, self._keys, tenant, **switch)
        return _view(after).as_response(nulls=True)


async def switch_tenant(tenants: Tenants, keys: KeyRing, tenant: Tenant, **switch: Any) -> Tenant:  # noqa: ANN401 - a field of a tenant
    """Set ``paused`` or ``disabled`` of a tenant, and return what is stored then."""
    return await write_tenant(
        tenants, keys, tenant, tenant, lambda stored: replace(stored, **switch)
    )


async def write_tenant(
    tenants: Tenants,
    keys: KeyRing,
    before: Tenant | None,
    after: Tenant,
    changed: Callable[[Tenant], Tenant] | None = None,
) -> Tenant:
    """Replace a tenant; with ``changed``, what is stored by then, so that no other change is undone."""
    try:
        await refuse_others_sender(tenants, before, after)
        if changed is None:
            await tenants.define([after])
        else:
            after = found(await tenants.change(after.id, changed), "tenant")
    except DomainClaimed as error:
        raise Refusal(409, _sentence(error)) from None
    except TierUnknown as error:
        raise bad_value("tier", str(error)) from None
    keys.forget()
    return after


def _view(tenant: Tenant) -> TenantView:
    limits = None if tenant.limits is None else LimitsDocument.of(tenant.limits)
    return TenantView.of(tenant, company_id=tenant.id, limits=limits)


def _sentence(error: Exception) -> str:
    told = str(error)
    return told[:1].upper() + told[1:]


def _in_json(field: str) -> str:
    known = TenantChange.model_fields.get(field)
    return field if known is None or known.alias is None else known.alias

"""Tenants: their list, and one of them with its share, its settings and its keys."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import pydantic
from starlette.responses import Response

from carteiro.api.admin.keys import add_key, revoke_key
from carteiro.api.admin.tenants import TenantChange, switch_tenant, write_tenant
from carteiro.api.intake import Office
from carteiro.api.key_ring import KeyRing
from carteiro.api.refusal import bad_value, found, not_found
from carteiro.api.whose import found_tenant
from carteiro.console.charts import Series
from carteiro.console.listing import PAGE_ROWS, cursor_in, text_in
from carteiro.console.page import Change, Pages, Show
from carteiro.console.visit import Visit
from carteiro.email.message import plainly
from carteiro.errors import FieldError, InvalidMessage, QueueAway
from carteiro.model import EMAIL, Standing, Tenant, TenantId
from carteiro.policy.names import HOLDER_RULE, NAME_RULE, is_holder, is_name
from carteiro.views.fairness import RANGES, FairnessReport, fairness_report
from carteiro.views.kpis import Range

_ONE: Final = "/admin/v1/tenants/{tenant}"
_STANDINGS = "GET /admin/v1/standings"
_TEXTS = ("name", "tier", "default_from", "contact", "retry_preset")
_NUMBERS: Mapping[str, type[float]] = {"weight": float, "cap": int, "rate_per_second": float}
_LIMITS = ("per_minute", "per_hour", "per_day")
_LISTS = ("from_domains", "allowed_networks")
_NULLABLE = {"tier", "default_from", "contact", "retry_preset"}
_MOST_DAYS = 3650


class TenantPages(Pages):
    """Pages of tenants."""

    def __init__(self, office: Office, ring: KeyRing) -> None:
        self._office = office
        self._ports = office.backend
        self._tenants = office.backend.tenants
        self._ring = ring

    @Show("tenants", needs="GET /admin/v1/tenants")
    async def list(self, visit: Visit) -> Response:
        """Tenants by id, with their standing."""
        asked = text_in(visit, "tenant")
        if asked is not None:
            if not is_name(asked):
                raise not_found("tenant")
            return visit.to(_page_of(asked))
        page = await self._tenants.list(cursor=cursor_in(visit), limit=PAGE_ROWS)
        standings = await self._standings([each.id for each in page.rows])
        return visit.page("tenants.html", page=page, standings=standings, weight_of=self._weight)

    @Change("tenants", needs=f"PUT {_ONE}")
    async def create(self, visit: Visit) -> Response:
        """Create a tenant; one that is there already is not changed."""
        name = visit.form.get("tenant", "").strip()
        if not is_name(name):
            raise InvalidMessage([FieldError("tenant", NAME_RULE)])
        [before] = await self._tenants.find([TenantId(name)])
        if before is None:
            await write_tenant(self._tenants, self._ring, None, Tenant(TenantId(name)))
        return visit.to(_page_of(name), flash="tenants.is_there", tenant=name)

    @Show("tenants/{tenant}", needs=f"GET {_ONE}")
    async def show(self, visit: Visit) -> Response:
        """One tenant."""
        tenant = await found_tenant(self._tenants, visit.request)
        standings = await self._standings([tenant.id])
        told = await fairness_report(
            self._ports.rollups,
            _range_in(visit),
            tenant.id,
            weight=self._weight(tenant),
            sees_others=visit.may(_STANDINGS),
        )
        return visit.page(
            "tenant.html",
            tenant=tenant,
            weight=self._weight(tenant),
            standing=None if standings is None else standings.get(tenant.id),
            is_queue_away=standings is None,
            told=told,
            ranges=RANGES,
            chart=_chart(visit, told),
            keys=await self._ports.keys.list(tenant.id),
            usual=self._office.settings.api.limits,
            preset_options=[(each, each) for each in self._office.settings.presets],
            now=datetime.now(UTC),
        )

    @Change("tenants/{tenant}/pause", needs=f"POST {_ONE}/pause", confirms="tenants.sure_pause")
    async def pause(self, visit: Visit) -> Response:
        """Accept its messages, but send none until it is resumed."""
        return await self._switched(visit, "tenants.paused_now", paused=True)

    @Change("tenants/{tenant}/resume", needs=f"POST {_ONE}/resume")
    async def resume(self, visit: Visit) -> Response:
        """Send its waiting messages again."""
        return await self._switched(visit, "tenants.resumed_now", paused=False)

    @Change(
        "tenants/{tenant}/disable", needs=f"POST {_ONE}/disable", confirms="tenants.sure_disable"
    )
    async def disable(self, visit: Visit) -> Response:
        """Accept no more messages, refuse its keys, hold waiting messages."""
        return await self._switched(visit, "tenants.disabled_now", disabled=True)

    @Change("tenants/{tenant}/enable", needs=f"POST {_ONE}/enable")
    async def enable(self, visit: Visit) -> Response:
        """Enable a disabled tenant."""
        return await self._switched(visit, "tenants.enabled_now", disabled=False)

    @Change("tenants/{tenant}/settings", needs=f"PATCH {_ONE}")
    async def change(self, visit: Visit) -> Response:
        """Change the fields that differ from those on the form: what others changed since stays."""
        tenant = await found_tenant(self._tenants, visit.request)
        asked = _change_in(visit.form)
        changed = partial(asked.made_of, presets=self._office.settings.presets)
        await write_tenant(self._tenants, self._ring, tenant, changed(tenant), changed)
        return visit.to(_page_of(tenant.id), flash="tenants.changed_now")

    @Change("tenants/{tenant}/keys", needs=f"POST {_ONE}/keys")
    async def make_key(self, visit: Visit) -> Response:
        """Make a key; the answer alone contains it."""
        tenant = await found_tenant(self._tenants, visit.request)
        name = visit.form.get("name", "").strip()
        if name and not is_holder(name):
            raise bad_value("name", HOLDER_RULE)
        days = _number(visit.form.get("days", ""), "days", int)
        if days is not None and not 1 <= days <= _MOST_DAYS:
            raise bad_value("days", f"should be 1 to {_MOST_DAYS}")
        if "days" not in visit.form:
            raise bad_value("days", "is missing")
        made, secret = await add_key(
            self._ports.keys,
            tenant.id,
            name=name,
            expires_in=None if days is None else timedelta(days=days),
        )
        return visit.page("tenant_key.html", tenant=tenant, key=made, secret=secret)

    @Change(
        "tenants/{tenant}/keys/{key}/revoke",
        needs=f"DELETE {_ONE}/keys/{{key}}",
        confirms="tenants.sure_revoke",
    )
    async def revoke_key(self, visit: Visit) -> Response:
        """Revoke a key."""
        tenant = await found_tenant(self._tenants, visit.request)
        await revoke_key(self._ports.keys, self._ring, visit.request, tenant.id)
        return visit.to(_page_of(tenant.id), flash="tenants.revoked_now")

    async def _switched(self, visit: Visit, flash: str, **switch: bool) -> Response:
        tenant = await found_tenant(self._tenants, visit.request)
        await switch_tenant(self._tenants, self._ring, tenant, **switch)
        return visit.to(_page_of(tenant.id), flash=flash)

    async def _standings(self, tenants: Sequence[TenantId]) -> dict[TenantId, Standing] | None:
        """The standings of these tenants; None: the queue is unreachable."""
        try:
            standings = await self._tenants.standings(EMAIL, tenants=tenants)
        except QueueAway:
            return None
        return {each.tenant: each for each in standings}

    def _weight(self, tenant: Tenant) -> float:
        """The weight that counts: its own, else that of its tier."""
        if tenant.weight is not None:
            return tenant.weight
        return float(self._office.settings.tiers.get(tenant.tier or "", 1))


def _page_of(tenant: str) -> str:
    return f"tenants/{quote(tenant, safe='')}"


def _range_in(visit: Visit) -> Range:
    asked = visit.query.get("range", Range.HOUR)
    return found(next((each for each in RANGES if each == asked), None), "range of time")


def _chart(visit: Visit, told: FairnessReport) -> dict[str, Any] | None:
    """The lines of the chart, in percent; None: nothing was served."""
    if not told.served:
        return None
    at = [told.served.get(each) for each in told.times]
    share = tuple(None if each is None else 100 * each.share for each in at)
    fair = tuple(None if each is None else 100 * each.fair_share(told.weight) for each in at)
    return {
        "labels": [each.astimezone(visit.zone).strftime("%H:%M") for each in told.times],
        "series": [
            Series(visit.words("tenants.served_share"), share, colour=1),
            Series(visit.words("tenants.fair_share"), fair, colour=3),
        ],
        "jain": [None if each is None else each.jain for each in at],
    }


# --- the form of settings


def _change_in(form: Mapping[str, str]) -> TenantChange:
    """The fields of the form that differ from what the page had shown."""
    given: dict[str, Any] = {}
    for name in (*_TEXTS, *_NUMBERS, *_LISTS):
        if name in form and form[name] != form.get(f"was_{name}"):
            given[name] = _value_of(name, form[name].strip())
    limits = ("limits", *_LIMITS)
    if any(form.get(name, "") != form.get(f"was_{name}", "") for name in limits):
        is_own = form.get("limits") == "own"
        own = {each: _number(form.get(each, ""), each, int) for each in _LIMITS}
        given["limits"] = own if is_own else None
    try:
        return TenantChange.model_validate(
            {_alias(name): each for name, each in given.items()}, strict=False
        )
    except pydantic.ValidationError as error:
        raise plainly(error) from None


def _value_of(name: str, text: str) -> Any:  # noqa: ANN401 - of any field
    if name in _NUMBERS:
        return _number(text, name, _NUMBERS[name])
    if name in _LISTS:
        return tuple(text.replace(",", " ").split())
    return None if name in _NULLABLE and not text else text


def _alias(name: str) -> str:
    return TenantChange.model_fields[name].alias or name


def _number(text: str, name: str, kind: type[float]) -> float | None:
    """The number in a field; None: it is empty."""
    if not text.strip():
        return None
    try:
        return kind(text.strip())
    except ValueError:
        raise bad_value(name, "should be a number") from None

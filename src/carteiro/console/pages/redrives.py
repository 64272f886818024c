"""Redrives: plan one, start it with a few, watch it, pause, resume or cancel it."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pydantic
from starlette.responses import Response

from carteiro.api.admin.redrives import NewRedrive, begun, redrive_of
from carteiro.api.key_ring import name_of
from carteiro.api.refusal import Refusal, found
from carteiro.console.hub import Hub, Topic
from carteiro.console.listing import PAGE_ROWS, chips, cursor_in, text_in
from carteiro.console.page import Change, Pages, Show
from carteiro.console.pages.dead_letters import FILTERS, asked_in, wanted_in
from carteiro.console.visit import Visit
from carteiro.dead_letters.redrive import plan_redrive, start_redrive
from carteiro.email.message import plainly
from carteiro.model import (
    ENDED_REDRIVES,
    Ramp,
    Redrive,
    RedriveId,
    RedriveState,
    TenantId,
)
from carteiro.policy.ramp import expected
from carteiro.ports import Backend, Redrives
from carteiro.views.redrives import redrive_json

_API = "/admin/v1/redrives"
_PACE = ("canary", "firstRatePerSecond", "maxRatePerSecond")


class RedrivePages(Pages):
    """Redrives of many dead letters."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._redrives = backend.redrives

    @Show("redrives", needs=f"GET {_API}")
    async def list(self, visit: Visit) -> Response:
        """Open and ended redrives, newest first."""
        tenant = visit.within(text_in(visit, "tenant"))
        page = await self._redrives.list(tenant=tenant, cursor=cursor_in(visit), limit=PAGE_ROWS)
        rows = [(each, _matching(each)) for each in page.rows]
        return visit.page(
            "redrives.html", page=page, rows=rows, chips=chips(visit, "redrives", ("tenant",))
        )

    @Show("redrives/plan", needs=f"POST {_API}/plan")
    async def plan(self, visit: Visit) -> Response:
        """The dead letters that it would send, its pace, and its expected time; nothing is changed."""
        ramp = _pace_in(visit)
        plan = await plan_redrive(self._backend, wanted_in(visit))
        asked = asked_in(visit)
        pace = {
            name: visit.query[name] for name in (*_PACE, "maxFailedPercent") if name in visit.query
        }
        return visit.page(
            "redrive_plan.html",
            plan=plan,
            ramp=ramp,
            asked=asked,
            whole=asked | pace,
            expected=max(expected(plan.total, ramp), timedelta(seconds=1)),
            chips=chips(visit, "dead_letters", FILTERS),
        )

    @Change("redrives", needs=f"POST {_API}", confirms="redrives.sure")
    async def start(self, visit: Visit) -> Response:
        """Start the redrive that was planned: the filters and the pace are in the address."""
        ramp, by = _pace_in(visit), name_of(visit.request)
        started = begun(await start_redrive(self._backend, wanted_in(visit), by=by, ramp=ramp))
        return visit.to(f"redrives/{started.id}", flash="redrives.started")

    @Show("redrives/{id}", needs=f"GET {_API}/{{id}}")
    async def show(self, visit: Visit) -> Response:
        """One redrive, and its progress."""
        redrive = await redrive_of(self._redrives, visit.request)
        is_over = redrive.state in ENDED_REDRIVES
        return visit.page(
            "redrive.html", redrive=redrive, matching=_matching(redrive), is_over=is_over
        )

    @Change("redrives/{id}/pause", needs=f"POST {_API}/{{id}}/pause")
    async def pause(self, visit: Visit) -> Response:
        """Redrive no further message until it is resumed."""
        return await self._set(visit, RedriveState.PAUSED)

    @Change("redrives/{id}/resume", needs=f"POST {_API}/{{id}}/resume")
    async def resume(self, visit: Visit) -> Response:
        """Continue it, with a few first."""
        return await self._set(visit, RedriveState.RUNNING)

    @Change(
        "redrives/{id}/cancel", needs=f"POST {_API}/{{id}}/cancel", confirms="redrives.sure_cancel"
    )
    async def cancel(self, visit: Visit) -> Response:
        """End it; those already redriven are still sent."""
        return await self._set(visit, RedriveState.CANCELLED)

    async def _set(self, visit: Visit, state: RedriveState) -> Response:
        known = await redrive_of(self._redrives, visit.request)
        after = found(await self._redrives.set(known.id, state), "redrive")
        if after.state is not state:
            now = visit.words.term("redrives", f"state_{after.state}")
            raise Refusal(409, visit.words("redrives.refused", state=now))
        return visit.to(f"redrives/{after.id}", flash=f"redrives.set_{state}")


def offer_progress(hub: Hub, redrives: Redrives) -> None:
    """The progress of each redrive, live."""

    def topic(about: str) -> Topic | None:
        try:
            identity = RedriveId(str(UUID(about)))
        except ValueError:
            return None

        async def read(tenant: TenantId | None) -> Redrive | None:
            return await redrives.show(identity, tenant=tenant)

        return Topic(f"redrive:{identity}", f"GET {_API}/{{id}}", read, _shown)

    hub.offer_each("redrive", topic)


def _shown(redrive: Redrive | None, visit: Visit) -> str:
    return visit.rendered("redrive_progress.html", redrive=redrive)


def _matching(redrive: Redrive) -> dict[str, Any]:
    matching: dict[str, Any] = redrive_json(redrive)["matching"]
    return matching


def _pace_in(visit: Visit) -> Ramp:
    """The pace in the address; what is not given is as usual. Raises `InvalidMessage`."""
    given: dict[str, Any] = {name: visit.query[name] for name in _PACE if name in visit.query}
    if percent := visit.query.get("maxFailedPercent"):
        try:
            given["maxFailedShare"] = float(percent) / 100
        except ValueError:
            given["maxFailedShare"] = percent
    try:
        return NewRedrive.model_validate(given, strict=False).ramp()
    except pydantic.ValidationError as error:
        raise plainly(error) from None

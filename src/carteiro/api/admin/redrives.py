"""Endpoints of redrives: plan, start, follow, pause, resume and cancel them."""

from typing import Any
from uuid import UUID

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.admin.dead_letter_documents import DeadQuestion, GroupView, wanted_by
from carteiro.api.documents import Document, Moment, PageDocument
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.key_ring import name_of, within
from carteiro.api.reading import PageQuestion, Question, read_query, read_question
from carteiro.api.refusal import Refusal, found, not_found
from carteiro.dead_letters.redrive import plan_redrive, start_redrive
from carteiro.model import ENDED_REDRIVES, Ramp, Redrive, RedriveId, RedriveState, TooManyRedrives
from carteiro.ports import Backend, Redrives
from carteiro.views.redrives import plan_json, redrive_json

_WHAT = "redrive"
_USUAL = Ramp()


class NewRedrive(Question):
    """The dead letters to redrive, and the pace: a few first, then a rate that doubles while they succeed."""

    matching: DeadQuestion = DeadQuestion()
    canary: int = Field(default=_USUAL.canary, ge=1, le=100)
    first_rate_per_second: float = Field(default=_USUAL.first_rate, ge=0.001, le=100_000)
    max_rate_per_second: float = Field(default=_USUAL.max_rate, ge=0.001, le=100_000)
    max_failed_share: float = Field(default=_USUAL.max_failed, ge=0, le=1)

    def ramp(self) -> Ramp:
        """The pace."""
        first, most = self.first_rate_per_second, self.max_rate_per_second
        return Ramp(self.canary, min(first, most), most, self.max_failed_share)


class RedriveListQuestion(PageQuestion):
    """A page of redrives, of all tenants or of one."""

    company_id: str | None = Field(default=None, max_length=255)


class CauseView(GroupView):
    """Dead letters of one failure group; ``cause``: the group in words, null if it is not kept any more."""

    cause: str | None


class PlanView(Document):
    """The dead letters that a redrive would send now: their number, the largest groups and tenants, and a sample.

    ``expectedMs``: its time if all are sent and the workers keep up.
    """

    total: int
    expected_ms: int
    groups: list[CauseView]
    tenants: list[GroupView]
    sample: list[str]


class RedriveView(Document):
    """A redrive; ``companyId`` null: of all tenants. ``reason``: why it stopped or paused by itself.

    ``total`` matched at its start. ``watched`` were redriven and have no result yet; ``late`` had none within 10
    minutes; ``skipped`` could not be redriven. ``ratePerSecond`` null: the first few are not sent yet.
    """

    id: str
    company_id: str | None
    state: RedriveState
    reason: str | None
    by: str
    provider: str | None = Field(
        description="Of an automatic redrive: the provider that recovered."
    )
    total: int
    redriven: int
    sent: int
    failed: int
    cancelled: int
    late: int
    watched: int
    skipped: int
    rate_per_second: float | None
    canary: int
    first_rate_per_second: float
    max_rate_per_second: float
    max_failed_share: float
    matching: dict[str, Any]
    started_at: Moment
    changed_at: Moment


class RedrivePage(PageDocument):
    """Redrives, newest first."""

    items: list[RedriveView]


class RedriveEndpoints(Endpoints):
    """Endpoints of administrators for redrives."""

    prefix = "/admin/v1/redrives"

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._redrives = backend.redrives

    @Endpoint("POST", "/plan", "Plan a redrive", PlanView, reads=NewRedrive)
    async def plan(self, request: Request) -> Response:
        """The dead letters that it would send, and the expected time; nothing is changed."""
        asked = await read_question(request, NewRedrive)
        wanted = wanted_by(request, asked.matching)
        plan = await plan_redrive(self._backend, wanted)
        return PlanView.model_validate(plan_json(plan, asked.ramp())).as_response(nulls=True)

    @Endpoint(
        "POST", "", "Start a redrive", RedriveView, status=202, reads=NewRedrive, refuses=(409,)
    )
    async def start(self, request: Request) -> Response:
        """Redrive all that match and are not redriven, as a job; ``Location`` leads to it."""
        asked = await read_question(request, NewRedrive)
        wanted, by = wanted_by(request, asked.matching), name_of(request)
        started = begun(await start_redrive(self._backend, wanted, by=by, ramp=asked.ramp()))
        headers = {"Location": f"{self.prefix}/{started.id}"}
        return _view(started).as_response(202, headers=headers, nulls=True)

    @Endpoint("GET", "", "List redrives", RedrivePage, query=RedriveListQuestion)
    async def list(self, request: Request) -> Response:
        """Open and ended redrives, newest first."""
        asked = read_query(request, RedriveListQuestion)
        tenant = within(request, asked.company_id)
        page = await self._redrives.list(tenant=tenant, cursor=asked.after, limit=asked.limit)
        return RedrivePage.response(page, _view)

    @Endpoint("GET", "/{id}", "Look at a redrive", RedriveView)
    async def show(self, request: Request) -> Response:
        """One redrive and its progress."""
        return _view(await redrive_of(self._redrives, request)).as_response(nulls=True)

    @Endpoint("POST", "/{id}/pause", "Pause a redrive", RedriveView, refuses=(409,))
    async def pause(self, request: Request) -> Response:
        """Redrive no further message after this answer, until it is resumed."""
        return await self._set(request, RedriveState.PAUSED)

    @Endpoint("POST", "/{id}/resume", "Resume a redrive", RedriveView, refuses=(409,))
    async def resume(self, request: Request) -> Response:
        """Continue a paused or stopped one; it sends a few first, as at its start."""
        return await self._set(request, RedriveState.RUNNING)

    @Endpoint("POST", "/{id}/cancel", "Cancel a redrive", RedriveView, refuses=(409,))
    async def cancel(self, request: Request) -> Response:
        """Redrive no further message after this answer; those already redriven are still sent."""
        return await self._set(request, RedriveState.CANCELLED)

    async def _set(self, request: Request, state: RedriveState) -> Response:
        known = await redrive_of(self._redrives, request)
        after = found(await self._redrives.set(known.id, state), _WHAT)
        if after.state is not state:
            is_over = after.state in ENDED_REDRIVES
            way = " starts another" if is_over else f"/{after.id}/resume continues it"
            raise Refusal(409, f"The redrive is {after.state}: POST {self.prefix}{way}")
        return _view(after).as_response(nulls=True)


async def redrive_of(redrives: Redrives, request: Request) -> Redrive:
    """The redrive with the id in the path; a `Refusal` if the viewer has none."""
    try:
        identity = RedriveId(str(UUID(request.path_params["id"])))
    except ValueError:
        raise not_found(_WHAT) from None
    return found(await redrives.show(identity, tenant=within(request)), _WHAT)


def begun(answer: Redrive | TooManyRedrives) -> Redrive:
    """The redrive that was started; a `Refusal` if too many are open."""
    if isinstance(answer, TooManyRedrives):
        whose = "here" if answer.of_tenant else "in this installation"
        text = f"{answer.most} redrives are open {whose}: cancel one, or wait for its end"
        raise Refusal(409, text)
    return answer


def _view(redrive: Redrive) -> RedriveView:
    return RedriveView.model_validate(redrive_json(redrive))

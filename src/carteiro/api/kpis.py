"""Endpoints of key figures: of all tenants for administrators, of its own for a tenant."""

from typing import Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.documents import Document
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.key_ring import within
from carteiro.api.reading import Question, read_query
from carteiro.api.refusal import found
from carteiro.api.whose import Whose
from carteiro.model import TenantId
from carteiro.policy.names import is_name
from carteiro.ports import Backend, Rollups
from carteiro.views.kpis import KpiReport, Range, report


class KpiView(Document):
    """A key figure: a share (0 to 1) or seconds; null: nothing happened that it could be computed from.

    ``count``: the number of messages, or of pauses, that it is about.
    """

    name: str
    unit: Literal["share", "seconds"]
    figure: float | None
    count: int
    goal_is: Literal["above", "below"] | None
    goal: float | None
    is_met: bool | None


class AttemptView(Document):
    """Ended attempts with this number, and those that sent their message."""

    attempt: int
    count: int
    sent: int
    share: float


class CountsView(Document):
    """The number of messages; ``retried`` counts each retry."""

    accepted: int
    sent: int
    retried: int
    failed: int
    cancelled: int
    redriven: int


class DelayView(Document):
    """Messages that took less than this time from accept to sent, and not less than the bound before; null: longer."""

    below_ms: int | None
    count: int


class PartView(Document):
    """The numbers of one provider, or of one template type."""

    name: str
    counts: CountsView


class KpiReportView(Document):
    """Key figures and the numbers behind them; ``failedByCode`` of messages, ``errorsByCode`` of attempts.

    ``meanWaitMs``: until the first attempt. ``providers``, ``mostInFlight`` and ``longestQueueAgeMs`` are only of all
    tenants together, ``templates`` only of one: at most 50, those with the most messages.
    """

    company_id: str | None
    range: Range
    kpis: list[KpiView]
    attempts: list[AttemptView]
    counts: CountsView
    delays: list[DelayView]
    failed_by_code: dict[str, int]
    errors_by_code: dict[str, int]
    mean_wait_ms: int | None
    most_in_flight: int | None
    longest_queue_age_ms: int | None
    providers: list[PartView]
    templates: list[PartView]


class KpiQuestion(Question):
    """The time before now."""

    range: Range = Field(default=Range.DAY)


class TenantKpiQuestion(KpiQuestion):
    """The time before now, and a tenant."""

    company_id: str | None = Field(default=None, min_length=1, max_length=255)


class OwnKpiEndpoints(Endpoints):
    """Endpoint of tenants for their own key figures."""

    def __init__(self, rollups: Rollups, whose: Whose) -> None:
        self._rollups = rollups
        self._whose = whose

    @Endpoint("GET", "/v1/kpis", "See your key figures", KpiReportView, query=KpiQuestion)
    async def kpis(self, request: Request) -> Response:
        """Key figures of the caller's own messages, with their goals."""
        tenant = await self._whose.tenant_of(request)
        return await _answer(self._rollups, read_query(request, KpiQuestion).range, tenant)


class KpiEndpoints(Endpoints):
    """Endpoint of administrators for key figures."""

    def __init__(self, ports: Backend) -> None:
        self._rollups = ports.rollups
        self._tenants = ports.tenants

    @Endpoint(
        "GET",
        "/admin/v1/kpis",
        "See key figures",
        KpiReportView,
        query=TenantKpiQuestion,
        refuses=(404,),
    )
    async def kpis(self, request: Request) -> Response:
        """Key figures of all tenants, or of one, with their goals."""
        asked = read_query(request, TenantKpiQuestion)
        name = within(request, asked.company_id)
        if name is None:
            return await _answer(self._rollups, asked.range, None)
        [tenant] = await self._tenants.find([TenantId(name)]) if is_name(name) else [None]
        return await _answer(self._rollups, asked.range, found(tenant, "tenant").id)


async def _answer(rollups: Rollups, asked: Range, tenant: TenantId | None) -> Response:
    told = await report(rollups, asked, tenant)
    return _view(told, tenant).as_response(nulls=True)


def _view(told: KpiReport, tenant: TenantId | None) -> KpiReportView:
    lists = {
        "kpis": [KpiView.of(each) for each in told.kpis],
        "attempts": [AttemptView.of(each) for each in told.attempts],
        "delays": [DelayView.of(each) for each in told.delays],
        "providers": [
            PartView(name=p.name, counts=CountsView.of(p.counts)) for p in told.providers
        ],
        "templates": [
            PartView(name=p.name, counts=CountsView.of(p.counts)) for p in told.templates
        ],
    }
    return KpiReportView.of(told, company_id=tenant, counts=CountsView.of(told.counts), **lists)

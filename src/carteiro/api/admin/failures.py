"""Endpoints of failure groups: messages that fail alike."""

import re

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.documents import Document, Moment, PageDocument
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.key_ring import within
from carteiro.api.reading import PageQuestion, Question, read_query
from carteiro.api.refusal import Refusal, found
from carteiro.model import Category, FailureFilter, FailureGroup, GroupState, Scope
from carteiro.policy.advice import advice_on
from carteiro.policy.grouping import GROUP
from carteiro.ports import Failures

_LONGEST = 255
_WHAT = "failure group"


class FailureGroupQuestion(Question):
    """``companyId``: only the failures of this tenant."""

    company_id: str | None = Field(default=None, max_length=_LONGEST)


class FailuresQuestion(PageQuestion):
    """A selection of failure groups; a field that is not given does not restrict it."""

    company_id: str | None = Field(default=None, max_length=_LONGEST)
    state: GroupState | None = None
    provider: str | None = Field(default=None, max_length=_LONGEST)


class FailureGroupView(Document):
    """Failures of one provider, by one rule, for one reason. Of the reason, only known words are shown.

    ``code``, ``category`` and ``scope`` are those of the last one. ``openedAt``: the first one since it was last
    resolved. Of a tenant that shares the group, ``code`` is empty, and ``openedAt`` is its own first one. ``attempts``
    counts failed attempts, ``deaths`` how often a message became a dead letter: one that is redriven and dies again
    counts twice. ``action``: what to do; ``runbook``: the page of the docs.
    """

    id: str
    provider: str
    rule: str
    error: str
    reason: str
    code: str
    category: Category
    scope: Scope
    state: GroupState
    first_seen: Moment
    opened_at: Moment
    last_seen: Moment
    resolved_at: Moment | None
    attempts: int
    deaths: int
    action: str
    runbook: str


class FailureGroupPage(PageDocument):
    """Matching failure groups, most recently seen first."""

    items: list[FailureGroupView]


class HourView(Document):
    """Failures of the hour that begins then."""

    at: Moment
    attempts: int
    deaths: int


class TenantPartView(Document):
    """Failures of one tenant in the shown hours; ``companyId`` null: of all others together."""

    company_id: str | None
    attempts: int
    deaths: int


class FailureReportView(Document):
    """A failure group: its last 48 hours, the tenants in them, most failures first, and the newest messages."""

    group: FailureGroupView
    hours: list[HourView]
    tenants: list[TenantPartView]
    samples: list[str]


class FailureEndpoints(Endpoints):
    """Endpoints of administrators for failure groups."""

    prefix = "/admin/v1/failures"

    def __init__(self, failures: Failures) -> None:
        self._failures = failures

    @Endpoint("GET", "", "List failure groups", FailureGroupPage, query=FailuresQuestion)
    async def list(self, request: Request) -> Response:
        """Messages that fail alike, most recently seen first; of one tenant with its own counts and times."""
        asked = read_query(request, FailuresQuestion)
        tenant = within(request, asked.company_id)
        wanted = FailureFilter(tenant, asked.state, asked.provider)
        page = await self._failures.list(wanted, cursor=asked.after, limit=asked.limit)
        return FailureGroupPage.response(page, _view)

    @Endpoint(
        "GET", "/{id}", "Look at a failure group", FailureReportView, query=FailureGroupQuestion
    )
    async def show(self, request: Request) -> Response:
        """One group with its hours, tenants and newest messages."""
        tenant = within(request, read_query(request, FailureGroupQuestion).company_id)
        report = await self._failures.show(_id(request), tenant=tenant)
        shown = found(report, _WHAT)
        return FailureReportView(
            group=_view(shown.group),
            hours=[HourView.of(each) for each in shown.hours],
            tenants=[TenantPartView.of(each, company_id=each.tenant) for each in shown.tenants],
            samples=[*shown.samples],
        ).as_response(nulls=True)

    @Endpoint(
        "POST",
        "/{id}/acknowledge",
        "Acknowledge a failure group",
        FailureGroupView,
        refuses=(409,),
    )
    async def acknowledge(self, request: Request) -> Response:
        """Mark it as being worked on; it stays acknowledged when it recurs."""
        return await self._moved(request, GroupState.ACKNOWLEDGED)

    @Endpoint("POST", "/{id}/resolve", "Resolve a failure group", FailureGroupView)
    async def resolve(self, request: Request) -> Response:
        """Mark its cause as removed; the next failure opens it again."""
        return await self._moved(request, GroupState.RESOLVED)

    @Endpoint("POST", "/{id}/ignore", "Ignore a failure group", FailureGroupView)
    async def ignore(self, request: Request) -> Response:
        """Mark it as not worth work; it stays ignored when it recurs."""
        return await self._moved(request, GroupState.IGNORED)

    async def _moved(self, request: Request, state: GroupState) -> Response:
        moved = found(await self._failures.move(_id(request), state), _WHAT)
        if moved.state is not state:
            raise Refusal(409, "A resolved group cannot be acknowledged: the next failure opens it")
        return _view(moved).as_response(nulls=True)


def _id(request: Request) -> str:
    return found(re.fullmatch(GROUP, request.path_params["id"]), _WHAT)[0]


def _view(group: FailureGroup) -> FailureGroupView:
    advice = advice_on(group)
    return FailureGroupView.of(group, action=advice.action, runbook=advice.runbook)

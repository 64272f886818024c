"""Endpoints of alerts: list, acknowledge and silence them; list and test their notices."""

from datetime import timedelta
from typing import Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.documents import Document, Moment, PageDocument
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.key_ring import within
from carteiro.api.reading import PageQuestion, Question, read_query, read_question
from carteiro.api.refusal import Refusal, bad_value, found, not_found
from carteiro.model import MILLISECOND
from carteiro.model.alerts import (
    Alert,
    AlertRefusal,
    AlertRules,
    AlertState,
    DueNotice,
    Severity,
    Silence,
)
from carteiro.policy.alert_states import silenced_tenant
from carteiro.ports import Alerts
from carteiro.views import notices

LONGEST_SILENCE = timedelta(days=90)
LONGEST_REASON = 500
_LONGEST = 600  # a tenant and a template type
_DAY_MS = 86_400_000


class AlertQuestion(PageQuestion):
    """Open or resolved alerts; a field that is not given does not restrict them."""

    state: Literal["open", "resolved"] = "open"
    name: str | None = Field(default=None, max_length=_LONGEST)
    company_id: str | None = Field(default=None, max_length=255)


class Acknowledgement(Question):
    """The subject of the alert; empty: it has none."""

    subject: str = Field(default="", max_length=_LONGEST)


class SilenceQuestion(Question):
    """Open silences, or all of the last month, the newest first."""

    state: Literal["open", "all"] = "open"


class NewSilence(Question):
    """A silence of an alert, ``*`` for all of them; an empty subject: of any subject."""

    alert: str = Field(min_length=1, max_length=_LONGEST)
    subject: str = Field(default="", max_length=_LONGEST)
    lasts_ms: int = Field(ge=1000, le=LONGEST_SILENCE // MILLISECOND)
    reason: str = Field(min_length=1, max_length=LONGEST_REASON)


class AlertView(Document):
    """An alert. An empty subject: the whole installation, or all subjects above the limit, with their number as value.

    ``since``: start of the condition. ``seenAt``: the last evaluation that found it. ``toldAt``: the last notice.
    """

    name: str
    subject: str
    company_id: str | None
    state: AlertState
    value: float
    threshold: float
    since: Moment
    seen_at: Moment
    changed_at: Moment
    told_at: Moment | None
    acknowledged_by: str | None


class AlertPage(PageDocument):
    """Alerts, the last change first."""

    items: list[AlertView]


class SilenceView(Document):
    """A silence; ``until`` may be past."""

    id: str
    alert: str
    subject: str
    reason: str
    by: str
    created_at: Moment
    until: Moment


class AlertDefinitionView(Document):
    """The definition of an alert, its open alerts, and its silences of the last month."""

    name: str
    severity: Severity
    about: str
    condition: str
    window_ms: int
    threshold: float
    lasts_ms: int
    action: str
    runbook: str
    open: list[AlertView]
    silences: list[SilenceView]


class SilenceList(Document):
    """Silences, the next to end first; of all of them, the newest."""

    items: list[SilenceView]


class NoticeView(Document):
    """A notice that a channel does not have yet; an empty channel: no worker has read it yet."""

    id: str
    at: Moment
    title: str
    channel: str
    tries: int
    due_at: Moment
    error: str


class NoticeList(Document):
    """Notices on their way, oldest first."""

    items: list[NoticeView]


class TrialNotice(Document):
    """The notice that every channel gets."""

    id: str


class AlertEndpoints(Endpoints):
    """Endpoints of administrators for alerts."""

    prefix = "/admin/v1"

    def __init__(self, alerts: Alerts, rules: AlertRules) -> None:
        self._alerts = alerts
        self._rules = rules

    @Endpoint("GET", "/alerts", "List alerts", AlertPage, query=AlertQuestion)
    async def list(self, request: Request) -> Response:
        """Open or resolved alerts, the last change first; ``nextCursor`` leads to the next page."""
        asked = read_query(request, AlertQuestion)
        page = await self._alerts.list(
            name=asked.name,
            tenant=within(request, asked.company_id),
            resolved=asked.state == "resolved",
            cursor=asked.after,
            limit=asked.limit,
        )
        return AlertPage.response(page, _view)

    @Endpoint("GET", "/alerts/{name}", "Look at an alert", AlertDefinitionView)
    async def show(self, request: Request) -> Response:
        """Definition of an alert, what to do, its open alerts, and its silences of the last month, newest first."""
        known = found(self._rules.definitions.get(request.path_params["name"]), "alert")
        tenant = within(request)
        page = await self._alerts.list(name=known.name, tenant=tenant)
        silences = await self._alerts.silenced(known.name, tenant=tenant)
        view = AlertDefinitionView.of(
            known,
            about=known.about.value,
            window_ms=known.window // MILLISECOND,
            lasts_ms=known.lasts // MILLISECOND,
            open=[_view(each) for each in page.rows],
            silences=[SilenceView.of(each) for each in silences],
        )
        return view.as_response(nulls=True)

    @Endpoint("POST", "/alerts/test", "Test the channels", TrialNotice, status=202)
    async def test(self, _: Request) -> Response:
        """Send a notice to every channel; a worker does so within seconds. `GET /admin/v1/notices` shows failures."""
        notice = await self._alerts.test()
        return TrialNotice(id=notice.id).as_response(202)

    @Endpoint(
        "POST",
        "/alerts/{name}/acknowledge",
        "Acknowledge an alert",
        AlertView,
        reads=Acknowledgement,
        refuses=(409,),
    )
    async def acknowledge(self, request: Request) -> Response:
        """Stop the reminders of a firing alert; every channel gets a notice with the name of the token."""
        asked = await read_question(request, Acknowledgement)
        name = request.path_params["name"]
        alert = await acknowledge(self._alerts, self._rules, name, asked.subject)
        return _view(alert).as_response(nulls=True)

    @Endpoint("GET", "/notices", "List undelivered notices", NoticeList)
    async def notices(self, _: Request) -> Response:
        """Notices that channels do not have yet, with the last error."""
        items = [_notice_view(each) for each in await self._alerts.waiting()]
        return NoticeList(items=items).as_response(nulls=True)

    @Endpoint("GET", "/silences", "List silences", SilenceList, query=SilenceQuestion)
    async def silences(self, request: Request) -> Response:
        """Silences that have not ended, the next to end first."""
        asked, alerts = read_query(request, SilenceQuestion), self._alerts
        found = await (alerts.silences() if asked.state == "open" else alerts.silenced())
        items = [SilenceView.of(each) for each in found]
        return SilenceList(items=items).as_response(nulls=True)

    @Endpoint(
        "POST",
        "/silences",
        "Silence an alert",
        SilenceView,
        status=201,
        reads=NewSilence,
        refuses=(409,),
    )
    async def silence(self, request: Request) -> Response:
        """Send no notices about an alert for a time. What still holds at the end is reported then."""
        asked = await read_question(request, NewSilence)
        made = await silence(
            self._alerts,
            self._rules,
            asked.alert,
            asked.subject,
            lasts=asked.lasts_ms * MILLISECOND,
            reason=asked.reason,
        )
        return SilenceView.of(made).as_response(201)

    @Endpoint("DELETE", "/silences/{id}", "End a silence", status=204)
    async def unsilence(self, request: Request) -> Response:
        """End a silence now."""
        if not await self._alerts.unsilence(request.path_params["id"]):
            raise not_found("silence")
        return Response(status_code=204)


async def acknowledge(alerts: Alerts, rules: AlertRules, name: str, subject: str) -> Alert:
    """Acknowledge a firing alert; a `Refusal` if there is none, or it does not fire."""
    match await alerts.acknowledge(name, subject, rules):
        case Alert() as alert:
            return alert
        case AlertRefusal.NOT_FIRING:
            raise Refusal(409, "Only a firing alert can be acknowledged")
        case _:
            raise not_found("alert")


async def silence(  # noqa: PLR0913 - what a silence has
    alerts: Alerts, rules: AlertRules, alert: str, subject: str, *, lasts: timedelta, reason: str
) -> Silence:
    """Silence an alert; a `Refusal` if it cannot be."""
    tenant = silenced_tenant(alert, subject, rules)
    if tenant is None:
        raise bad_value("alert", "is not the name of an alert, nor *")
    made = await alerts.silence(alert, subject, tenant, lasts=lasts, reason=reason)
    if made is AlertRefusal.NO_TENANT:
        raise bad_value("subject", "names no tenant")
    if not isinstance(made, Silence):
        raise Refusal(409, "There are too many silences: end one first")
    return made


def _view(alert: Alert) -> AlertView:
    return AlertView.of(
        alert, company_id=alert.tenant or None, acknowledged_by=alert.acknowledged_by or None
    )


def _notice_view(due: DueNotice) -> NoticeView:
    notice = due.notice
    return NoticeView.of(due, id=notice.id, at=notice.at, title=notices.title(notice))

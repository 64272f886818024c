"""Alerts: those that are open, their silences, and notices that nobody has yet."""

from datetime import timedelta
from typing import Final

from starlette.responses import Response

from carteiro.api.admin.alerts import (
    LONGEST_REASON,
    LONGEST_SILENCE,
    acknowledge,
    silence,
)
from carteiro.api.refusal import bad_value, not_found
from carteiro.console.listing import PAGE_ROWS, chips, cursor_in, text_in
from carteiro.console.page import Change, Pages, Show
from carteiro.console.visit import Visit
from carteiro.model.alerts import ALL_ALERTS, AlertRules
from carteiro.ports import Alerts
from carteiro.views import notices

_LIST: Final = "GET /admin/v1/alerts"
_FILTERS = ("name", "tenant")
_HOURS = (1, 4, 24, 24 * 7)


class AlertPages(Pages):
    """The page of alerts."""

    def __init__(self, alerts: Alerts, rules: AlertRules) -> None:
        self._alerts = alerts
        self._rules = rules

    @Show("alerts", needs=_LIST)
    async def list(self, visit: Visit) -> Response:
        """Open or resolved alerts; for those who may see all, silences and undelivered notices."""
        is_resolved = visit.query.get("state") == "resolved"
        page = await self._alerts.list(
            name=text_in(visit, "name"),
            tenant=visit.within(text_in(visit, "tenant")),
            resolved=is_resolved,
            cursor=cursor_in(visit),
            limit=PAGE_ROWS,
        )
        sees_all = visit.may("GET /admin/v1/silences")
        return visit.page(
            "alerts.html",
            page=page,
            is_resolved=is_resolved,
            chips=chips(visit, "alerts", _FILTERS),
            definitions=self._rules.definitions,
            silences=await self._alerts.silences() if sees_all else (),
            waiting=[
                (each, notices.title(each.notice))
                for each in (await self._alerts.waiting(limit=PAGE_ROWS) if sees_all else ())
            ],
            sees_all=sees_all,
            hours=_HOURS,
            all_alerts=ALL_ALERTS,
        )

    @Change("alerts/acknowledge", needs="POST /admin/v1/alerts/{name}/acknowledge")
    async def acknowledge(self, visit: Visit) -> Response:
        """Stop the reminders of a firing alert."""
        name, subject = visit.form.get("name", ""), visit.form.get("subject", "")
        await acknowledge(self._alerts, self._rules, name, subject)
        return visit.to("alerts", flash="alerts.acknowledged_now", name=name)

    @Change("alerts/silence", needs="POST /admin/v1/silences")
    async def silence(self, visit: Visit) -> Response:
        """Send no notices about an alert for a time."""
        form = visit.form
        alert, subject = form.get("alert", ""), form.get("subject", "").strip()
        reason = form.get("reason", "").strip()
        if not 1 <= len(reason) <= LONGEST_REASON:
            raise bad_value("reason", f"should have 1 to {LONGEST_REASON} characters")
        hours = form.get("hours", "")
        if not hours.isdecimal() or not timedelta(0) < _hours(hours) <= LONGEST_SILENCE:
            raise bad_value("hours", f"should be 1 to {LONGEST_SILENCE // timedelta(hours=1)}")
        await silence(self._alerts, self._rules, alert, subject, lasts=_hours(hours), reason=reason)
        return visit.to("alerts", flash="alerts.silenced_now", name=alert)

    @Change("alerts/unsilence", needs="DELETE /admin/v1/silences/{id}")
    async def unsilence(self, visit: Visit) -> Response:
        """End a silence now."""
        if not await self._alerts.unsilence(visit.form.get("id", "")):
            raise not_found("silence")
        return visit.to("alerts", flash="alerts.ended_now")

    @Change("alerts/test", needs="POST /admin/v1/alerts/test", confirms="alerts.sure_test")
    async def test(self, visit: Visit) -> Response:
        """Send a notice to every channel."""
        await self._alerts.test()
        return visit.to("alerts", flash="alerts.tested_now")


def _hours(text: str) -> timedelta:
    return timedelta(hours=int(text[:6]))

"""Alerts to an Alertmanager, through its API v2.

It resolves an alert that is not repeated: so each firing alert is posted again about twice a minute.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from carteiro.errors import NotDelivered
from carteiro.model.alerts import Notice, NoticeKind
from carteiro.runtime import posting
from carteiro.views import notices

LASTS = timedelta(minutes=3)  # without a repetition


class AlertmanagerChannel:
    """See `carteiro.ports.alerts.Channel`. Name, subject and severity decide which alerts are one."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def send(self, notice: Notice) -> None:
        """Begin the alert, or end it."""
        await self._post([notice])

    async def repeat(self, firing: Sequence[Notice]) -> None:
        """Keep the alerts that fire from ending."""
        if firing:
            await self._post(firing)

    async def _post(self, told: Sequence[Notice]) -> None:
        async with posting.client() as client:
            fault = await posting.post_alerts(client, self._url, [_document(each) for each in told])
        if fault is not None:
            raise NotDelivered(fault)


def _document(notice: Notice) -> dict[str, Any]:
    now = datetime.now(UTC)
    is_over = notice.kind is NoticeKind.RESOLVED
    labels = {
        "alertname": notice.alert,
        "subject": notice.subject,
        "severity": notice.severity.value,
    }
    annotations = {
        "summary": notices.title(notice),
        "description": notice.condition,
        "action": notice.action,
        "runbook": notice.runbook,
        "value": f"{notice.value:g}",
        "threshold": f"{notice.threshold:g}",
    }
    return posting.alert_document(
        labels, annotations, starts=notice.since, ends=now if is_over else now + LASTS
    )

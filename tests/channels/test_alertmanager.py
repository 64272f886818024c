"""Alerts to a real Alertmanager."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from uuid_utils import uuid7

from carteiro.channels.alertmanager import AlertmanagerChannel
from carteiro.errors import NotDelivered
from carteiro.model.alerts import Notice, NoticeKind
from support.alerting import a_notice
from support.receiving import a_receiver
from support.shared_servers import shared_alertmanager


def _now() -> Notice:
    """A notice about a subject of its own."""
    return replace(a_notice(), subject=str(uuid7()), since=datetime.now(UTC))


def _found(notice: Notice) -> list[dict[str, Any]]:
    return [
        each
        for each in shared_alertmanager().alerts()
        if each["labels"].get("subject") == notice.subject
    ]


@pytest.mark.servers
async def test_alert_begins_and_ends_at_the_alertmanager() -> None:
    """Repetitions are one alert: its labels are the same."""
    notice, channel = _now(), AlertmanagerChannel(shared_alertmanager().url)
    await channel.send(notice)
    await channel.send(replace(notice, kind=NoticeKind.REMINDER, value=12))
    await channel.repeat([notice])
    [alert] = _found(notice)
    await channel.send(replace(notice, kind=NoticeKind.RESOLVED))

    assert alert["labels"] == {
        "alertname": "TenantFails",
        "subject": notice.subject,
        "severity": "warning",
    }
    assert alert["annotations"]["action"] == "Look."
    assert _found(notice) == []


@pytest.mark.servers
async def test_firing_alert_is_kept_from_ending() -> None:
    """Each repetition moves its end; after a crash of Carteiro it ends by itself."""
    notice, channel = _now(), AlertmanagerChannel(shared_alertmanager().url)
    await channel.send(notice)
    [before] = _found(notice)
    await channel.repeat([notice])
    [after] = _found(notice)

    assert before["endsAt"] < after["endsAt"]


async def test_refusal_is_an_error() -> None:
    async with a_receiver(500) as receiver:
        with pytest.raises(NotDelivered, match="500"):
            await AlertmanagerChannel(receiver.url).send(a_notice())
        await AlertmanagerChannel(receiver.url).repeat([])

    [request] = receiver.received
    assert request.path == "/told/api/v2/alerts"

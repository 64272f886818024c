"""Trouble becomes alerts of a real Alertmanager: few, for as long as it lasts, and never in anybody's way."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from carteiro.tickets.alerts import (
    LASTS,
    MOST_KINDS,
    Alert,
    Alerts,
    bounded,
    dead_alert,
    held_alerts,
    paused_alert,
)
from carteiro.tickets.deaths import Paused, Trouble
from support.alertmanager_server import AlertmanagerServer, an_alertmanager
from support.archiving import until
from support.services import HOST, free_port
from support.shared_servers import shared_alertmanager

pytestmark = pytest.mark.servers

SOON = timedelta(milliseconds=20)


@pytest.fixture
def alertmanager() -> AlertmanagerServer:
    """One for all tests."""
    return shared_alertmanager()


@pytest.fixture
def type_() -> str:
    """A task type that no other test has: they share a server."""
    return f"TYPE-{uuid4().hex}"


class Wrong:
    """Trouble, as the test has it."""

    def __init__(self, *alerts: Alert) -> None:
        self.alerts = list(alerts)
        self.looks = 0
        self.answers: list[bool] = []

    async def look(self) -> list[Alert]:
        """Answer the question of an `Alerts`."""
        self.looks += 1
        return self.alerts


@asynccontextmanager
async def _alerting(
    url: str,
    wrong: Wrong,
    *,
    knows_all: bool = True,
    send_every: timedelta = SOON,
    lasts: timedelta = LASTS,
) -> AsyncIterator[Alerts]:
    alerts = Alerts(
        url,
        wrong.look,
        knows_all=knows_all,
        on_answer=wrong.answers.append,
        send_every=send_every,
        gather=SOON,
        lasts=lasts,
    )
    running = asyncio.create_task(alerts.run())
    try:
        yield alerts
    finally:
        running.cancel()
        await asyncio.wait([running])


def _trouble(type: str, id: str = "T-1", **facts: Any) -> Trouble:
    given = {"reason": "max_retries_exceeded", "error_type": "ValueError", "error": "no commit"}
    return Trouble(id=id, type=type, **(given | facts))


def _dead(type: str, count: int = 1, **facts: Any) -> Alert:
    trouble = _trouble(type, **facts)
    return dead_alert(trouble.kind, count, trouble)


def _of(server: AlertmanagerServer, type: str) -> list[dict[str, Any]]:
    return [each for each in server.alerts() if each["labels"].get("task_type") == type]


@pytest.fixture
def black_hole() -> Iterator[str]:
    """Somebody who takes connections and says nothing."""
    with closing(socket.create_server((HOST, 0))) as silent:
        yield f"http://{HOST}:{silent.getsockname()[1]}"


# --- what an alert says -----------------------------------------------------------------------


async def test_dead_tickets_of_one_kind_are_one_alert(
    alertmanager: AlertmanagerServer, type_: str
) -> None:
    """It counts them and names one; a ticket is in no label, or each would be an alert of its own."""
    wrong = Wrong(_dead(type_, 30, id="T-29", reason="unknown_task_type"))
    async with _alerting(alertmanager.url, wrong):
        await until(lambda: len(_of(alertmanager, type_)) == 1)

    [alert] = _of(alertmanager, type_)
    assert alert["labels"] == {
        "alertname": "TicketDeadLettered",
        "task_type": type_,
        "error_type": "ValueError",
        "severity": "warning",
    }
    said = alert["annotations"]
    assert (said["ticket_id"], said["description"]) == ("T-29", "no commit")
    found = f"Dead tickets that wait, of type {type_} with error ValueError: 30"
    assert said["summary"] == found
    assert "dlq show T-29" in said["action"]
    assert "dlq acknowledge" in said["action"]
    assert "deploy a handler" in said["action"]


def test_dead_records_that_are_not_tickets_are_of_another_type() -> None:
    """They have no type; summary and label say so."""
    alert = dead_alert(("", "Undecodable"), 2, _trouble("", "poison:t:0:0"))

    assert alert.summary == "Dead tickets that wait, of type other with error Undecodable: 2"
    assert dict(alert.labels)["task_type"] == "other"


def test_held_tickets_are_critical_and_counted_by_kind() -> None:
    """Nothing of their keys goes on until people do something."""
    held = [
        _trouble("BUILD", "a"),
        _trouble("BUILD", "b"),
        _trouble("BUILD", "c", error_type="KeyError"),
    ]

    found = {dict(each.labels)["error_type"]: each for each in held_alerts(held)}

    assert {dict(each.labels)["severity"] for each in found.values()} == {"critical"}
    assert {dict(each.labels)["alertname"] for each in found.values()} == {"TicketHeld"}
    assert (found["ValueError"].ticket, found["ValueError"].summary[-3:]) == ("b", ": 2")
    assert "tickets.dlq_enabled" in found["KeyError"].action


def test_a_paused_type_has_an_alert_of_its_own() -> None:
    """Secrets stay out of what people read."""
    alert = paused_alert(Paused("BUILD", "ConnectionError", "password=hunter2 refused"))

    labels = dict(alert.labels)
    assert (labels["alertname"], labels["severity"]) == ("TicketTypePaused", "critical")
    assert (labels["task_type"], labels["error_type"]) == ("BUILD", "ConnectionError")
    assert "hunter2" not in str(alert)


def test_hostile_types_do_not_become_as_many_alerts() -> None:
    """Beyond a bound the rarest are one alert for all others."""
    counts = {(f"t{each}", "E"): 2 for each in range(MOST_KINDS)}
    rare = {(f"rare{each}", "E"): 1 for each in range(50)}

    found = bounded(rare | counts)

    assert found == counts | {("other", "other"): 50}
    many = [_trouble(f"t{each}") for each in range(MOST_KINDS + 50)]
    assert len(held_alerts(many)) == MOST_KINDS + 1


# --- while it holds ---------------------------------------------------------------------------


async def test_an_alert_is_sent_again_for_as_long_as_it_holds(
    alertmanager: AlertmanagerServer, type_: str
) -> None:
    """Or the Alertmanager would take it for over."""
    async with _alerting(alertmanager.url, Wrong(_dead(type_))):
        await until(lambda: len(_of(alertmanager, type_)) == 1)
        [first] = _of(alertmanager, type_)
        await until(lambda: _of(alertmanager, type_)[0]["endsAt"] > first["endsAt"])

    [last] = _of(alertmanager, type_)
    assert last["fingerprint"] == first["fingerprint"]
    assert last["startsAt"] == first["startsAt"]


async def test_end_is_reported_by_a_source_that_knows_all_alerts(
    alertmanager: AlertmanagerServer, type_: str
) -> None:
    """At the next look, not only when the last word is out of date."""
    wrong = Wrong(_dead(type_))
    hour = timedelta(hours=1)
    async with _alerting(alertmanager.url, wrong, send_every=hour) as alerts:
        await until(lambda: len(_of(alertmanager, type_)) == 1)
        wrong.alerts.clear()
        alerts.news()
        await until(lambda: _of(alertmanager, type_) == [])


async def test_partial_source_ends_no_alert_of_another(
    alertmanager: AlertmanagerServer, type_: str
) -> None:
    """It ends by itself when nobody says it any more."""
    one, other = Wrong(_dead(type_)), Wrong(_dead(type_))
    lasts = timedelta(seconds=3)
    async with _alerting(alertmanager.url, one, knows_all=False, lasts=lasts):
        async with _alerting(alertmanager.url, other, knows_all=False, lasts=lasts):
            await until(lambda: min(one.looks, other.looks) > 1)
            other.alerts.clear()
            looks = other.looks
            await until(lambda: other.looks > looks + 2)
            assert len(_of(alertmanager, type_)) == 1
        one.alerts.clear()
        await until(lambda: _of(alertmanager, type_) == [])


async def test_alert_continues_after_a_restart(
    alertmanager: AlertmanagerServer, type_: str
) -> None:
    """Nothing is remembered here: it is looked at again, and is the same alert."""
    for _ in range(2):
        async with _alerting(alertmanager.url, Wrong(_dead(type_)), send_every=timedelta(hours=1)):
            await until(lambda: len(_of(alertmanager, type_)) == 1)
    [alert] = _of(alertmanager, type_)
    assert alert["startsAt"] < alert["updatedAt"]


async def test_proxies_of_the_environment_are_not_for_alerts(
    alertmanager: AlertmanagerServer, type_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Alertmanager is where its address says."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://{HOST}:{free_port()}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)

    async with _alerting(alertmanager.url, Wrong(_dead(type_))):
        await until(lambda: len(_of(alertmanager, type_)) == 1)


# --- away -------------------------------------------------------------------------------------


async def test_alertmanager_gets_alerts_when_it_is_back(type_: str) -> None:
    """Alerts that still hold by then; whether it answers is known."""
    wrong = Wrong(_dead(type_))
    with an_alertmanager() as own:
        own.stop()
        async with _alerting(own.url, wrong):
            await until(lambda: wrong.answers[-1:] == [False])
            await asyncio.to_thread(own.start)
            await until(lambda: len(_of(own, type_)) == 1)
            await until(lambda: wrong.answers[-1:] == [True])


async def test_silent_alertmanager_blocks_nothing(black_hole: str, type_: str) -> None:
    """To tell takes no time, and the end comes soon."""
    async with asyncio.timeout(30):
        async with _alerting(black_hole, Wrong(_dead(type_))) as alerts:
            for _ in range(1000):
                alerts.news()
            await asyncio.sleep(0)


async def test_a_look_that_fails_is_repeated(alertmanager: AlertmanagerServer, type_: str) -> None:
    """Whatever the reason: nobody else would tell."""
    wrong = Wrong(_dead(type_))

    async def failing() -> list[Alert]:
        if await wrong.look() and wrong.looks == 1:
            raise ValueError("odd")
        return wrong.alerts

    alerts = Alerts(alertmanager.url, failing, knows_all=True, send_every=SOON, gather=SOON)
    running = asyncio.create_task(alerts.run())
    await until(lambda: len(_of(alertmanager, type_)) == 1)
    running.cancel()
    await asyncio.wait([running])


async def test_without_an_address_it_is_looked_at_all_the_same() -> None:
    """Figures come of it; nobody gets an alert."""
    wrong = Wrong(_dead("BUILD"))
    async with _alerting("", wrong):
        await until(lambda: wrong.looks > 2)
    assert wrong.answers == []

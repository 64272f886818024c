"""Dead tickets become alerts of a real Alertmanager: few, lasting, and never in anybody's way."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from carteiro.tickets.alerts import ACTIVE_FOR, MOST_GROUPS, Alerts
from carteiro.tickets.dead_letter import Death
from carteiro.tickets.ticket import Record, read
from support.alertmanager_server import AlertmanagerServer, an_alertmanager
from support.archiving import until
from support.dead_tickets import a_dead_ticket, a_ticket
from support.services import HOST, free_port

SOON = timedelta(milliseconds=20)


@pytest.fixture
def type_() -> str:
    """A task type that no other test has: they share a server."""
    return f"TYPE-{uuid4().hex}"


@asynccontextmanager
async def _alerting(
    url: str, *, dropped: list[int] | None = None, active_for: timedelta = ACTIVE_FOR
) -> AsyncIterator[Alerts]:
    noted = [] if dropped is None else dropped
    alerts = Alerts(url, on_drop=noted.append, send_every=SOON, gather=SOON, active_for=active_for)
    running = asyncio.create_task(alerts.run())
    try:
        yield alerts
    finally:
        running.cancel()
        await asyncio.wait([running])


def _of(server: AlertmanagerServer, type: str) -> list[dict[str, Any]]:
    return [each for each in server.alerts() if each["labels"].get("task_type") == type]


@pytest.fixture
def black_hole() -> Iterator[str]:
    """Somebody who takes connections and says nothing."""
    with closing(socket.create_server((HOST, 0))) as silent:
        yield f"http://{HOST}:{silent.getsockname()[1]}"


async def test_all_that_are_alike_are_one_alert(
    alertmanager: AlertmanagerServer, type_: str
) -> None:
    """It counts them and names the last; a ticket is in no label, or each would be an alert of its own."""
    async with _alerting(alertmanager.url) as alerts:
        for each in range(30):
            alerts.died(a_dead_ticket(a_ticket(f"T-{each}", type_), at=each))
        await until(lambda: len(_of(alertmanager, type_)) == 1)

    [alert] = _of(alertmanager, type_)
    assert alert["labels"] == {
        "alertname": "TicketDeadLettered",
        "task_type": type_,
        "error_type": "ConnectionError",
        "severity": "warning",
    }
    assert alert["annotations"]["ticket_id"] == "T-29"
    assert alert["annotations"]["summary"].endswith(": 30")
    assert alert["annotations"]["description"] == "no route to host"


async def test_an_alert_says_what_helps(alertmanager: AlertmanagerServer, type_: str) -> None:
    """What is no ticket is not to be sent round again."""
    async with _alerting(alertmanager.url) as alerts:
        alerts.died(a_dead_ticket(a_ticket(type=type_), reason="unknown_task_type"))
        await until(lambda: len(_of(alertmanager, type_)) == 1)

    [alert] = _of(alertmanager, type_)
    assert "dlq show T-1" in alert["annotations"]["action"]
    assert "deploy a handler" in alert["annotations"]["action"]


async def test_proxies_of_the_environment_are_not_for_alerts(
    alertmanager: AlertmanagerServer, type_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Alertmanager is where its address says."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://{HOST}:{free_port()}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)

    async with _alerting(alertmanager.url) as alerts:
        alerts.died(a_dead_ticket(a_ticket(type=type_)))
        await until(lambda: len(_of(alertmanager, type_)) == 1)


async def test_other_errors_are_other_alerts(alertmanager: AlertmanagerServer, type_: str) -> None:
    """Who is responsible for one need not be woken for the other."""
    async with _alerting(alertmanager.url) as alerts:
        alerts.died(a_dead_ticket(a_ticket(type=type_), error_type="ValueError"))
        alerts.died(a_dead_ticket(a_ticket(type=type_), at=1, error_type="TimeoutError"))
        await until(lambda: len(_of(alertmanager, type_)) == 2)

    found = {each["labels"]["error_type"] for each in _of(alertmanager, type_)}
    assert found == {"ValueError", "TimeoutError"}


async def test_a_held_ticket_is_critical(alertmanager: AlertmanagerServer, type_: str) -> None:
    """Nothing of its key goes on until people do something; secrets stay out of what they read."""
    ticket = read(Record("t", 0, 0, None, b'{"ticket_id":"T-1","task_type":"%s"}' % type_.encode()))
    death = Death(ticket, "max_retries_exceeded", "ValueError", "password=hunter2 refused", 3, 1)

    async with _alerting(alertmanager.url) as alerts:
        alerts.held(death)
        await until(lambda: len(_of(alertmanager, type_)) == 1)

    [alert] = _of(alertmanager, type_)
    assert (alert["labels"]["alertname"], alert["labels"]["severity"]) == ("TicketHeld", "critical")
    assert "hunter2" not in str(alert)


async def test_an_alert_is_sent_again_while_it_lasts(
    alertmanager: AlertmanagerServer, type_: str
) -> None:
    """Or the Alertmanager would take it for over."""
    async with _alerting(alertmanager.url) as alerts:
        alerts.died(a_dead_ticket(a_ticket(type=type_)))
        await until(lambda: len(_of(alertmanager, type_)) == 1)
        [first] = _of(alertmanager, type_)
        await until(lambda: _of(alertmanager, type_)[0]["endsAt"] > first["endsAt"])

    [last] = _of(alertmanager, type_)
    assert last["fingerprint"] == first["fingerprint"]
    assert last["startsAt"] == first["startsAt"]


async def test_an_alert_ends_when_nothing_more_dies(
    alertmanager: AlertmanagerServer, type_: str
) -> None:
    """It was told, so nothing is dropped."""
    dropped: list[int] = []
    second = timedelta(seconds=1)
    async with _alerting(alertmanager.url, dropped=dropped, active_for=second) as alerts:
        alerts.died(a_dead_ticket(a_ticket(type=type_)))
        await until(lambda: len(_of(alertmanager, type_)) == 1)
        await until(lambda: _of(alertmanager, type_) == [])

    assert dropped == []


async def test_hostile_types_do_not_become_as_many_alerts(
    alertmanager: AlertmanagerServer, type_: str
) -> None:
    """Beyond a bound they are one alert for all others."""
    async with _alerting(alertmanager.url) as alerts:
        for each in range(MOST_GROUPS + 50):
            alerts.died(a_dead_ticket(a_ticket(type=f"{type_}-{each}"), at=each))
        await until(lambda: len(_of(alertmanager, "other")) == 1)

    own = [each for each in alertmanager.alerts() if type_ in each["labels"].get("task_type", "")]
    assert len(own) == MOST_GROUPS
    [other] = _of(alertmanager, "other")
    assert other["annotations"]["summary"].endswith(": 50")


# --- away -------------------------------------------------------------------------------------


async def test_an_alertmanager_that_comes_back_is_told(type_: str) -> None:
    """What is still active by then."""
    with an_alertmanager() as own:
        own.stop()
        async with _alerting(own.url) as alerts:
            alerts.died(a_dead_ticket(a_ticket(type=type_)))
            await asyncio.to_thread(own.start)
            await until(lambda: len(_of(own, type_)) == 1)


async def test_what_was_never_told_is_counted_as_dropped(type_: str) -> None:
    """So that somebody may notice."""
    dropped: list[int] = []
    nobody = f"http://{HOST}:{free_port()}"
    async with _alerting(nobody, dropped=dropped, active_for=SOON) as alerts:
        alerts.died(a_dead_ticket(a_ticket(type=type_)))
        alerts.died(a_dead_ticket(a_ticket(type=type_), at=1))
        await until(lambda: sum(dropped) == 2)


async def test_a_black_hole_keeps_nobody_waiting(black_hole: str, type_: str) -> None:
    """To tell takes no time, and the end comes soon."""
    async with asyncio.timeout(30):
        async with _alerting(black_hole) as alerts:
            for each in range(1000):
                alerts.died(a_dead_ticket(a_ticket(type=type_), at=each))
            await asyncio.sleep(0)


async def test_without_an_address_nothing_is_kept() -> None:
    """Whoever has no Alertmanager has the rules for Prometheus."""
    alerts = Alerts("", on_drop=lambda _: None)

    alerts.died(a_dead_ticket())

    await alerts.run()
    assert alerts._groups == {}

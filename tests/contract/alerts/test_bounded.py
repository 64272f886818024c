"""Alerts, bounded: resolved alerts are deleted after a month, and the oldest of too many before."""

from datetime import timedelta

import pytest

from carteiro.model import AuditFilter
from carteiro.model.alerts import AlertState, Silence
from carteiro.ports import Backend
from carteiro.stores.sql import alerts as sql_alerts
from carteiro.views.moments import in_iso
from support.alerting import FULL, MINUTE, OFTEN, RULES, full, moved, often, states
from support.builders import ACME, BRASA
from support.clock import StoreClock


async def _over(backend: Backend, clock: StoreClock, *findings: object) -> None:
    await backend.alerts.move(list(findings), RULES)  # type: ignore[arg-type]
    clock.advance(2 * MINUTE)
    await moved(backend)


async def test_resolved_alerts_are_deleted_after_a_month(
    backend: Backend, clock: StoreClock
) -> None:
    await _over(backend, clock, full())
    kept = await states(backend)
    clock.advance(timedelta(days=31))
    await moved(backend, often())

    assert kept == {FULL: AlertState.RESOLVED}
    assert await states(backend) == {f"{OFTEN} {ACME}": AlertState.FIRING}


async def test_oldest_of_too_many_resolved_alerts_is_deleted(
    backend: Backend, clock: StoreClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_alerts, "MOST_RESOLVED", 1)
    await _over(backend, clock, often(ACME))
    await _over(backend, clock, often(BRASA))
    await moved(backend, full())

    assert set(await states(backend)) == {FULL, f"{OFTEN} {BRASA}"}


async def test_ended_silences_are_deleted(
    backend: Backend, clock: StoreClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a month, and the first to end of too many before; open ones stay."""
    monkeypatch.setattr(sql_alerts, "MOST_RESOLVED", 1)
    made: list[Silence] = []
    for days in (2, 1, 60, 3):
        lasts = timedelta(days=days)
        each = await backend.alerts.silence(OFTEN, ACME, ACME, lasts=lasts, reason="known")
        assert isinstance(each, Silence)
        made.append(each)
        clock.advance(MINUTE)
    clock.advance(timedelta(days=4))
    await moved(backend, full())
    few = await backend.alerts.silenced(OFTEN)
    clock.advance(timedelta(days=30))
    await moved(backend, full())
    clock.back(timedelta(days=30))  # a list shows none that is older
    left = await backend.alerts.silenced(OFTEN)

    assert few == [made[3], made[2]]
    assert left == [made[2]]


async def test_look_without_findings_and_alerts_writes_nothing(backend: Backend) -> None:
    assert await moved(backend) == []
    assert await states(backend) == {}


async def test_changes_by_people_have_audit_rows(backend: Backend) -> None:
    """With the alert, its subject and the states; the reason of a silence may have any content, and is not in them."""
    await moved(backend, often())
    await backend.alerts.acknowledge(OFTEN, ACME, RULES)
    await backend.alerts.acknowledge(OFTEN, ACME, RULES)
    made = await backend.alerts.silence(OFTEN, ACME, ACME, lasts=MINUTE, reason="ana@x.example")
    assert isinstance(made, Silence)
    await backend.alerts.unsilence(made.id)
    notice = await backend.alerts.test()
    rows = (await backend.audit.list(AuditFilter(kind="alert"))).rows

    assert [(row.action, row.object, row.tenant) for row in rows[::-1]] == [
        ("acknowledge", f"{OFTEN} {ACME}", ACME),
        ("silence", f"{OFTEN} {ACME}", ACME),
        ("unsilence", f"{OFTEN} {ACME}", ACME),
        ("test", "Test", None),
    ]
    silenced = {"silence": made.id, "until": in_iso(made.until)}
    assert [(row.before, row.after) for row in rows[::-1]] == [
        ({"state": "firing"}, {"state": "acknowledged"}),
        ({}, silenced),
        (silenced, {"until": in_iso(rows[1].at)}),
        ({}, {"notice": notice.id}),
    ]
    assert "x.example" not in str(rows)

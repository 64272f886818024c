"""Alerts, bounded: resolved alerts are deleted after their retention, and the oldest of too many before."""

from datetime import timedelta

import pytest

from carteiro.model import AuditFilter
from carteiro.model.alerts import AlertState, Silence
from carteiro.ports import Backend
from carteiro.ports.upkeep import Kept
from carteiro.stores.sql import alerts as sql_alerts
from carteiro.views.moments import in_iso
from support.alerting import FULL, MINUTE, OFTEN, RULES, SLOW, full, moved, often, slow, states
from support.builders import ACME, BRASA
from support.clock import MILLISECOND, StoreClock

MONTH = timedelta(days=30)


async def _over(backend: Backend, clock: StoreClock, *findings: object) -> None:
    await backend.alerts.move(list(findings), RULES)  # type: ignore[arg-type]
    clock.advance(2 * MINUTE)
    await moved(backend)


async def test_resolved_alerts_are_deleted_after_their_retention(
    backend: Backend, clock: StoreClock
) -> None:
    """At its end, a page at a time: younger and open ones stay, and without a retention all of them."""
    await _over(backend, clock, often(ACME), often(BRASA))
    clock.advance(MONTH - 2 * MINUTE - MILLISECOND)
    await _over(backend, clock, full())
    await moved(backend, slow())

    early = await _pruned(backend, MONTH)
    clock.advance(MILLISECOND)
    kept = await _pruned(backend, None)
    pages = [await _pruned(backend, MONTH, limit=1) for _ in range(3)]

    assert (early, kept, pages) == (0, 0, [1, 1, 0])
    assert await states(backend) == {FULL: AlertState.RESOLVED, SLOW: AlertState.PENDING}


async def _pruned(backend: Backend, alerts: timedelta | None, *, limit: int = 1000) -> int:
    kept = Kept(alerts=alerts)
    pruned = await backend.upkeep.prune(bodies=None, histories=None, kept=kept, limit=limit)
    assert pruned.has_more is (pruned.alerts == limit)
    return pruned.alerts


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

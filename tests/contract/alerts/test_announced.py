"""Alerts, announced: a notice is stored in the transaction of its change."""

import pytest

from carteiro.model.alerts import NoticeKind
from carteiro.ports import Backend
from carteiro.stores.sql import alerts as sql_alerts
from support.alerting import FULL, MINUTE, RULES, full, kinds, moved, states, the_alert
from support.clock import StoreClock
from support.set_ups import Place


async def test_each_change_is_announced_once(backend: Backend, clock: StoreClock) -> None:
    """Firing, acknowledged, resolved; however often one looks in between."""
    told = [await moved(backend, full()), await moved(backend, full())]
    await backend.alerts.acknowledge(FULL, "", RULES)
    await backend.alerts.acknowledge(FULL, "", RULES)
    told += [await moved(backend, full())]
    clock.advance(2 * MINUTE)
    told += [await moved(backend), await moved(backend)]
    waiting = [each.notice for each in await backend.alerts.waiting()]

    assert told == [["firing"], [], [], ["resolved"], []]
    assert sorted(kinds(waiting)) == ["acknowledged", "firing", "resolved"]
    assert {each.condition for each in waiting} == {f"{FULL} holds."}


async def test_change_without_its_notice_is_not_stored(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the next look makes both."""

    async def failing(*_: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(sql_alerts, "_send", failing)
        with pytest.raises(RuntimeError):
            await moved(backend, full())
    before = await states(backend)

    assert before == {}
    assert await moved(backend, full()) == ["firing"]


async def test_notice_outlives_its_process(place: Place) -> None:
    """It is read as it was stored."""
    async with place.opened() as first:
        [notice] = await first.alerts.move([full()], RULES)
        since = (await the_alert(first)).since
    async with place.opened() as second:
        [waiting] = await second.alerts.waiting()

    assert waiting.notice == notice
    assert (notice.kind, notice.since, notice.at) == (NoticeKind.FIRING, since, since)

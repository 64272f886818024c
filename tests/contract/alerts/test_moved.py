"""Alerts, moved: one state each, which outlives its process."""

import asyncio

from carteiro.model import Actor, Via
from carteiro.model.alerts import AlertRefusal, AlertState
from carteiro.ports import Backend
from carteiro.runtime.acting import acting_as
from support.alerting import (
    FULL,
    MINUTE,
    OFTEN,
    RULES,
    SLOW,
    full,
    moved,
    often,
    slow,
    states,
    the_alert,
    unknown,
)
from support.builders import ACME, BRASA
from support.clock import StoreClock
from support.set_ups import Place


async def test_states_outlive_their_process(place: Place, clock: StoreClock) -> None:
    """A pending time goes on, a firing alert fires, an acknowledged one stays so."""
    async with place.opened() as first:
        await moved(first, slow(), full(), often())
        await first.alerts.acknowledge(FULL, "", RULES)
    clock.advance(5 * MINUTE)
    async with place.opened() as second:
        told = await moved(second, slow(), full(), often())

        assert told == ["firing"]
        assert await states(second) == {
            SLOW: AlertState.FIRING,
            FULL: AlertState.ACKNOWLEDGED,
            f"{OFTEN} {ACME}": AlertState.FIRING,
        }


async def test_looks_at_once_are_one_after_the_other(place: Place) -> None:
    """Two processes may lead for a moment: each change happens once."""
    async with place.opened() as one, place.opened() as other:
        looks = [each.alerts.move([full(), often()], RULES) for each in (one, other) * 4]
        told = [notice for notices in await asyncio.gather(*looks) for notice in notices]

        assert sorted(each.alert for each in told) == sorted([FULL, OFTEN])
        assert len(await one.alerts.waiting()) == 2


async def test_state_is_kept_while_the_condition_is_unknown(
    backend: Backend, clock: StoreClock
) -> None:
    """The alert neither resolves nor fires; once it is known to be over, it resolves after a time."""
    await moved(backend, full())
    clock.advance(10 * MINUTE)
    told = await moved(backend, unknown(), unknown(SLOW))
    kept = await states(backend)
    clock.advance(MINUTE)
    told += await moved(backend)
    clock.advance(MINUTE)

    assert (told, kept) == ([], {FULL: AlertState.FIRING})
    assert await moved(backend) == ["resolved"]
    assert await moved(backend, unknown()) == []
    assert await states(backend) == {FULL: AlertState.RESOLVED}


async def test_alert_is_read_as_it_was_stored(backend: Backend, clock: StoreClock) -> None:
    await moved(backend, often(value=0.25))
    with acting_as(Actor(Via.API, "ana", "127.0.0.1")):
        acknowledged = await backend.alerts.acknowledge(OFTEN, ACME, RULES)

    stored = await the_alert(backend)
    assert stored == acknowledged
    assert (stored.tenant, stored.value, stored.acknowledged_by) == (ACME, 0.25, "ana")
    assert stored.since == stored.changed_at == stored.told_at


async def test_only_a_firing_alert_is_acknowledged(backend: Backend) -> None:
    """A pending one is not, one that is not open is not, and one without a definition is unknown."""
    await moved(backend, slow())
    asked = [await backend.alerts.acknowledge(name, "", RULES) for name in (SLOW, FULL, "None")]

    assert asked == [AlertRefusal.NOT_FIRING, AlertRefusal.NOT_FIRING, AlertRefusal.UNKNOWN]


async def test_pages_have_no_gaps_and_no_duplicates(backend: Backend, clock: StoreClock) -> None:
    """The last change first; open and resolved ones are two lists."""
    await moved(backend, full())
    clock.advance(MINUTE)
    await moved(backend, full(), often(), often(BRASA))
    found, cursor = [], None
    while True:
        page = await backend.alerts.list(cursor=cursor, limit=1)
        found += [row.key for row in page.rows]
        cursor = page.next
        if cursor is None:
            break

    assert found == [(OFTEN, BRASA), (OFTEN, ACME), (FULL, "")]
    of_name = (await backend.alerts.list(name=OFTEN)).rows
    of_tenant = (await backend.alerts.list(tenant=ACME)).rows
    assert [row.subject for row in of_name] == [BRASA, ACME]
    assert [row.subject for row in of_tenant] == [ACME]
    assert (await backend.alerts.list(resolved=True)).rows == []

"""Alerts, silenced: a silence holds back notices until its end."""

from dataclasses import replace
from datetime import timedelta

from carteiro.model import Actor, TenantId, Via
from carteiro.model.alerts import ALL_ALERTS, AlertRefusal, Silence
from carteiro.ports import Backend
from carteiro.runtime.acting import acting_as
from carteiro.stores.sql.alerts import MOST_SILENCES
from support.alerting import FULL, MINUTE, OFTEN, RULES, SLOW, full, moved, often
from support.builders import ACME, BRASA
from support.clock import StoreClock

NOBODY = TenantId("")


async def _silenced(
    backend: Backend, alert: str = FULL, subject: str = "", *, lasts: timedelta = 10 * MINUTE
) -> Silence:
    made = await backend.alerts.silence(
        alert, subject, TenantId(subject), lasts=lasts, reason="upgrade ✉"
    )
    assert isinstance(made, Silence)
    return made


async def test_silence_ends_by_itself(backend: Backend, clock: StoreClock) -> None:
    """Then comes the notice about a condition that still holds."""
    await _silenced(backend)
    told = [await moved(backend, full())]
    clock.advance(10 * MINUTE)
    told += [await moved(backend, full())]

    assert told == [[], ["firing"]]
    assert await backend.alerts.silences() == []


async def test_acknowledgement_is_silenced_too(backend: Backend) -> None:
    await moved(backend, full())
    await _silenced(backend)
    await backend.alerts.acknowledge(FULL, "", RULES)

    assert len(await backend.alerts.waiting()) == 1


async def test_silence_of_one_subject_is_not_for_others(backend: Backend) -> None:
    await _silenced(backend, OFTEN, ACME)
    notices = await backend.alerts.move([often(ACME), often(BRASA)], RULES)

    assert [each.subject for each in notices] == [BRASA]


async def test_unknown_tenant_is_not_silenced(backend: Backend) -> None:
    """A typing error would silence nothing, and tell nobody."""
    unknown = TenantId("acmee")
    made = await backend.alerts.silence(OFTEN, unknown, unknown, lasts=MINUTE, reason="a typo")

    assert made is AlertRefusal.NO_TENANT
    assert await backend.alerts.silences() == []


async def test_silence_is_ended_by_hand(backend: Backend) -> None:
    """It is listed until then, as it was made."""
    with acting_as(Actor(Via.API, "ana", "127.0.0.1")):
        silence = await _silenced(backend)
    listed = await backend.alerts.silences()
    ended = [await backend.alerts.unsilence(each) for each in (silence.id, silence.id, "none")]

    assert listed == [silence]
    assert (silence.by, silence.reason) == ("ana", "upgrade ✉")
    assert silence.until - silence.created_at == 10 * MINUTE
    assert ended == [True, False, False]
    assert await moved(backend, full()) == ["firing"]


async def test_silences_that_ended_are_shown_for_a_month(
    backend: Backend, clock: StoreClock
) -> None:
    """With author, end and reason: also one that was ended by hand, and one of all alerts."""
    with acting_as(Actor(Via.API, "ana", "127.0.0.1")):
        first = await _silenced(backend)
    clock.advance(MINUTE)
    everything = await _silenced(backend, ALL_ALERTS)
    clock.advance(MINUTE)
    of_acme = await _silenced(backend, OFTEN, ACME)
    ended = replace(first, until=clock.at())
    await backend.alerts.unsilence(first.id)
    clock.advance(timedelta(days=29))

    shown = [
        await backend.alerts.silenced(FULL),
        await backend.alerts.silenced(OFTEN, tenant=ACME),
        await backend.alerts.silenced(),
        await backend.alerts.silenced(limit=1),
        await backend.alerts.silenced(SLOW, tenant=BRASA),
    ]
    assert await backend.alerts.silences() == []
    assert not await backend.alerts.unsilence(everything.id)
    clock.advance(timedelta(days=1))
    left = await backend.alerts.silenced()

    both = [of_acme, everything, ended]
    assert shown == [[everything, ended], [of_acme], both, [of_acme], []]
    assert left == both[:2]


async def test_silences_are_few(backend: Backend, clock: StoreClock) -> None:
    """Each is compared with each alert; those that ended make room."""
    for _ in range(MOST_SILENCES):
        await _silenced(backend)
    beyond = await backend.alerts.silence(FULL, "", NOBODY, lasts=MINUTE, reason="more")
    clock.advance(10 * MINUTE)

    assert beyond is AlertRefusal.TOO_MANY
    assert await _silenced(backend)

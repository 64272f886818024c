"""Rollups, bounded: a past minute or hour keeps the most active tenants; old ones are deleted."""

from datetime import timedelta

import pytest

from carteiro.model import GroupState, MessageId, TenantId
from carteiro.ports import Backend
from carteiro.stores.sql import rollups
from support.builders import dead, messages, tenants_named
from support.clock import StoreClock
from support.steps import accepted, attempted

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
MANY = {TenantId(name): number for number, name in enumerate(("one", "two", "three", "four"), 1)}


async def _busy(backend: Backend) -> None:
    await backend.tenants.define(tenants_named(list(MANY)))
    for tenant, number in MANY.items():
        await accepted(backend.store, *messages(number, tenant, template_type=f"of-{tenant}"))


async def _tenants(backend: Backend, back: timedelta = HOUR) -> set[str]:
    return set(await backend.rollups.split("tenant", "minute", back))


async def test_past_minute_keeps_the_most_active(backend: Backend, clock: StoreClock) -> None:
    """The current one keeps all, as it is not over; totals are exact."""
    await _busy(backend)
    await backend.rollups.fold(limit=10, most=2)
    now = await _tenants(backend)
    clock.advance(MINUTE)
    await accepted(backend.store, *messages(1, "one"))
    await backend.rollups.fold(limit=10, most=2)

    assert now == set(MANY)
    assert await _tenants(backend) == {"three", "four", "one"}  # the last one of this minute
    assert await backend.rollups.total("minute", HOUR) == {"accepted": 11}
    templates = [
        await backend.rollups.split("template", "minute", HOUR, tenant=each) for each in MANY
    ]
    assert [len(each) for each in templates] == [0, 0, 1, 1]


async def test_minute_before_a_pause_is_trimmed_later(backend: Backend, clock: StoreClock) -> None:
    """Nothing was folded for some minutes; then it is not the last one any more."""
    await _busy(backend)
    await backend.rollups.fold(limit=10, most=2)
    clock.advance(MINUTE)
    await accepted(backend.store, *messages(1, "one"))
    clock.advance(MINUTE)
    await accepted(backend.store, *messages(1, "one"))
    await backend.rollups.fold(limit=10, most=2)
    await accepted(backend.store, *messages(1, "one"))
    clock.advance(10 * MINUTE)
    await backend.rollups.fold(limit=10, most=2)

    assert await _tenants(backend, 11 * MINUTE) == {"one"}
    assert await _tenants(backend) == {"three", "four", "one"}


async def test_fold_for_a_question_keeps_as_many_as_upkeep(
    backend: Backend, clock: StoreClock
) -> None:
    """It is made by a change of a failure group, too: no row stays without a limit."""
    await backend.tenants.define(tenants_named(["one"]))
    await accepted(backend.store, *messages(1, "one"))
    await backend.rollups.fold(limit=10, most=2)
    await _busy(backend)
    clock.advance(MINUTE)
    await backend.failures.move("nothing", GroupState.OPEN)

    assert await _tenants(backend) == {"three", "four"}


async def test_question_adds_up_a_limited_number_of_notes(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While no upkeep runs, those of all tenants wait: a question folds them first, in pages."""
    monkeypatch.setattr(rollups, "_MOST_WAITING", 2)
    await backend.tenants.define(tenants_named(["one"]))
    for _ in range(5):
        await accepted(backend.store, *messages(1, "one"))

    assert await backend.rollups.total("minute", HOUR, tenant=TenantId("one")) == {"accepted": 5}
    assert await backend.rollups.fold(limit=10, most=10) == 1
    for _ in range(3):
        await accepted(backend.store, *messages(1, "one"))
    await backend.failures.list()
    assert await backend.rollups.fold(limit=10, most=10) == 1


async def test_answer_has_the_templates_with_the_most_messages(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant may have a thousand rows in each hour of a month: to read all of them takes minutes and gigabytes."""
    monkeypatch.setattr(rollups, "MOST_TEMPLATES", 2)
    await backend.tenants.define(tenants_named(["one"]))
    for number, name in ((1, "b"), (3, "c"), (2, "a")):
        await accepted(backend.store, *messages(number, "one", template_type=name))
    await backend.rollups.fold(limit=10, most=10)
    await accepted(backend.store, *messages(1, "one", template_type="a"))
    await accepted(backend.store, *messages(1, "one", template_type="new"))

    ask = backend.rollups.split
    found = await ask("template", "minute", HOUR, tenant=TenantId("one"))
    assert found == {"a": {"accepted": 3}, "c": {"accepted": 3}}


async def test_failure_of_a_trimmed_minute_is_taken_back_from_no_other(
    backend: Backend, clock: StoreClock
) -> None:
    """The row that had it is gone: new failures of the tenant still count."""
    await backend.tenants.define(tenants_named(["one", "two"]))
    old = await _dead(backend, "one")
    await _dead(backend, "two", 2)
    clock.advance(MINUTE)
    await backend.rollups.fold(limit=10, most=1)
    await _dead(backend, "one")
    await backend.dead_letters.redrive(old, by="ana")
    await backend.rollups.fold(limit=10, most=1)

    one, all_ = [
        await backend.rollups.total("minute", HOUR, tenant=tenant)
        for tenant in (TenantId("one"), None)
    ]
    assert (one["failed"], all_["failed"]) == (1, 3)


async def _dead(backend: Backend, tenant: str, number: int = 1) -> list[MessageId]:
    ids = []
    for message in messages(number, tenant):
        ids += await accepted(backend.store, message)
        await attempted(backend.store, dead())
    return ids


async def test_late_note_does_not_exceed_the_bound(backend: Backend, clock: StoreClock) -> None:
    """Its minute is past when it is folded."""
    await _busy(backend)
    clock.advance(MINUTE)
    for _ in MANY:
        await backend.rollups.fold(limit=1, most=2)

    assert len(await _tenants(backend)) == 2
    assert await backend.rollups.total("minute", HOUR) == {"accepted": 10}


async def test_old_minutes_and_hours_are_deleted(backend: Backend, clock: StoreClock) -> None:
    """Each after its own retention, a few at a time."""
    await _busy(backend)
    await backend.rollups.fold(limit=10, most=10)
    clock.advance(3 * HOUR)
    await _busy(backend)
    await backend.rollups.fold(limit=10, most=10)
    retention = {"minutes": HOUR, "hours": 10 * HOUR}

    pruned = [await backend.rollups.prune(limit=5, **retention) for _ in range(3)]
    totals = [
        (await backend.rollups.total(span, 5 * HOUR))["accepted"] for span in ("minute", "hour")
    ]

    assert pruned == [5, 4, 0]  # the totals, four tenants and their templates
    assert totals == [10, 20]

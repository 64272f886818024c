"""Failures, bounded: groups, tenants of an hour and samples have a maximum; totals of a group stay exact."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carteiro.model import GroupState, TenantFailures, TenantId
from carteiro.policy.grouping import group_of
from carteiro.ports import Backend
from carteiro.stores.sql import failing
from support.builders import ACME, BRASA, tenants_named
from support.clock import StoreClock
from support.failing import (
    FULL,
    FULL_ID,
    HOUR,
    UNKNOWN,
    UNKNOWN_ID,
    died,
    failed,
    folded,
    group_in,
    numbered,
)

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small bounds."""
    monkeypatch.setattr(failing, "MOST_GROUPS", 3)
    monkeypatch.setattr(failing, "MOST_TENANTS", 2)


async def _ids(backend: Backend) -> set[str]:
    return {each.id for each in (await backend.failures.list()).rows}


async def test_least_recently_seen_group_goes_first(backend: Backend, clock: StoreClock) -> None:
    """With its hours: if it recurs, it starts at zero."""
    failures = [numbered(number) for number in range(5)]
    ids = [group_of("sandbox", each) for each in failures]
    for each in failures:
        await failed(backend, clock, failure=each)
        await folded(backend)

    assert await _ids(backend) == {*ids[2:]}
    await failed(backend, clock, failure=failures[0])
    report = await backend.failures.show(ids[0])
    assert report is not None
    assert [each.attempts for each in report.hours] == [report.group.attempts] == [1]


async def test_open_group_with_dead_letters_goes_last(backend: Backend, clock: StoreClock) -> None:
    """Of those of its tenant."""
    await died(backend, clock)
    for number in range(4):
        await failed(backend, clock, failure=numbered(number))
        await folded(backend)

    found = await _ids(backend)
    assert len(found) == 3
    assert FULL_ID in found


@pytest.mark.parametrize(
    "state", [GroupState.ACKNOWLEDGED, GroupState.IGNORED, GroupState.RESOLVED]
)
async def test_decision_of_somebody_outlives_many_new_groups(
    backend: Backend, clock: StoreClock, state: GroupState
) -> None:
    """Else a server that always answers something new would open again what people ignore."""
    await failed(backend, clock, failure=UNKNOWN)
    await backend.failures.move(UNKNOWN_ID, state)
    for reason in ("mailbox full", "user mailbox full", "mailbox is locked", "quota exceeded"):
        await died(backend, clock, failure=replace(FULL, reason=reason))
        await folded(backend)

    found = {each.id: each.state for each in (await backend.failures.list()).rows}
    assert len(found) == 4
    assert found[UNKNOWN_ID] == state


async def test_decisions_are_bounded(backend: Backend, clock: StoreClock) -> None:
    """Apart from open groups: the least recently seen go first."""
    failures = [numbered(number) for number in range(4)]
    ids = [group_of("sandbox", each) for each in failures]
    for each, group in zip(failures, ids, strict=True):
        await died(backend, clock, failure=each)
        await backend.failures.move(group, GroupState.IGNORED)
    await failed(backend, clock, failure=UNKNOWN)
    await folded(backend)

    assert await _ids(backend) == {*ids[1:], UNKNOWN_ID}


async def test_tenant_displaces_only_its_own_groups(backend: Backend, clock: StoreClock) -> None:
    """Also with dead letters, while the other's attempts only failed; and by groups that it shares."""
    await failed(backend, clock, failure=UNKNOWN)
    for number in range(5):
        await died(backend, clock, BRASA, failure=numbered(number))
        await folded(backend)
    await failed(backend, clock, BRASA, failure=UNKNOWN)
    await died(backend, clock, BRASA, failure=numbered(5))
    await folded(backend)

    found = await _ids(backend)
    newest = {group_of("sandbox", numbered(number)) for number in (4, 5)}
    assert found == {UNKNOWN_ID, *newest}
    assert (await group_in(backend, UNKNOWN_ID, ACME)).attempts == 1


async def test_rule_with_many_groups_leaves_room_for_others(
    backend: Backend, clock: StoreClock
) -> None:
    """A server that always answers something new pushes out its own groups."""
    await failed(backend, clock, failure=UNKNOWN)
    for reason in ("mailbox full", "user mailbox full", "mailbox is locked", "quota exceeded"):
        await failed(backend, clock, failure=replace(FULL, reason=reason))
        await folded(backend)

    found = await _ids(backend)
    assert len(found) == 3
    assert group_of("sandbox", UNKNOWN) in found


async def test_hour_keeps_the_tenants_with_the_most(backend: Backend, clock: StoreClock) -> None:
    """The others are one line; the total is exact."""
    many = [TenantId(f"t-{number}") for number in range(4)]
    await backend.tenants.define(tenants_named(many))
    for number, tenant in enumerate(many, 1):
        for _ in range(number):
            await died(backend, clock, tenant)
    await folded(backend)

    report = await backend.failures.show(FULL_ID)
    assert report is not None
    assert report.tenants == [
        TenantFailures(many[3], 4, 4),
        TenantFailures(many[2], 3, 3),
        TenantFailures(None, 3, 3),
    ]
    assert (report.group.deaths, sum(each.deaths for each in report.hours)) == (10, 10)


async def test_newest_messages_are_samples(backend: Backend, clock: StoreClock) -> None:
    """Five at most, of all tenants and hours together."""
    messages = []
    for number in range(9):
        messages.append(await failed(backend, clock, ACME if number % 2 else BRASA))
        if number % 4 == 3:
            await folded(backend)
            clock.advance(HOUR)

    report = await backend.failures.show(FULL_ID)
    assert report is not None
    assert report.samples == messages[:-6:-1]


async def test_old_hours_and_groups_are_deleted(backend: Backend, clock: StoreClock) -> None:
    """A group goes once it was not seen for that time; the counts of one that was stay its own."""
    await failed(backend, clock, failure=UNKNOWN)
    await failed(backend, clock)
    await folded(backend)
    clock.advance(3 * DAY)
    await failed(backend, clock, failure=FULL)
    await folded(backend)

    pruned = [await backend.failures.prune(older=DAY, limit=3) for _ in range(3)]

    # Of each group the hour of all and of one tenant; and the sums of the group that is gone, of all and of this one.
    assert pruned == [3, 3, 0]
    report = await backend.failures.show(FULL_ID)
    assert report is not None
    assert (report.group.attempts, [each.attempts for each in report.hours]) == (2, [1])
    assert await _ids(backend) == {FULL_ID}

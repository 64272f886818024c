"""Failures, grouped: each failed attempt and each death is counted once in the group of its cause."""

import asyncio
from datetime import timedelta

from carteiro.model import (
    Dead,
    DeadReason,
    FailureFilter,
    FailureGroup,
    FailureReport,
    GroupState,
    HourOfFailures,
    TenantFailures,
)
from carteiro.policy.grouping import group_of, readable_reason
from carteiro.policy.lifecycle import EXPIRED_UNSENT
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message, retry, sent
from support.clock import StoreClock, past
from support.failing import (
    FULL,
    FULL_ID,
    HOUR,
    SECOND,
    UNKNOWN,
    UNKNOWN_ID,
    died,
    failed,
    folded,
    group_in,
)
from support.set_ups import Place
from support.steps import (
    HOLD,
    accepted,
    attempted,
    claimed_alone,
    claimed_and_declared,
    settled,
)


async def test_group_has_the_whole_story(backend: Backend, clock: StoreClock) -> None:
    """Failed attempts and deaths apart, by hour and by tenant; the same before and after a fold."""
    start = clock.at()
    hour = start.replace(minute=0, second=0, microsecond=0)
    first = await failed(backend, clock)
    second = await died(backend, clock, BRASA)
    clock.advance(HOUR)
    end = clock.at()
    third = await died(backend, clock, BRASA)
    group = FailureGroup(
        id=FULL_ID,
        provider="sandbox",
        rule=FULL.rule,
        error="",
        reason="mailbox is full",
        code="452",
        category=FULL.category,
        scope=FULL.scope,
        state=GroupState.OPEN,
        first_seen=start,
        opened_at=start,
        last_seen=end,
        resolved_at=None,
        attempts=3,
        deaths=2,
    )

    for _ in range(2):
        assert (await backend.failures.list()).rows == [group]
        assert await backend.failures.show(FULL_ID) == FailureReport(
            group,
            hours=[HourOfFailures(hour, 2, 1), HourOfFailures(hour + HOUR, 1, 1)],
            tenants=[TenantFailures(BRASA, 2, 2), TenantFailures(ACME, 1, 0)],
            samples=[third, second, first],
        )
        await folded(backend)


async def test_hours_of_many_groups_are_those_of_each(backend: Backend, clock: StoreClock) -> None:
    """The folded ones of the last 48 hours, of all or of a tenant; a group without any is left out."""
    hour = clock.at().replace(minute=0, second=0, microsecond=0)
    await died(backend, clock)
    await failed(backend, clock, BRASA)
    clock.advance(HOUR)
    await failed(backend, clock, BRASA)
    await died(backend, clock, failure=UNKNOWN)
    assert await backend.failures.hours([FULL_ID]) == {}
    await folded(backend)

    first, second = HourOfFailures(hour, 2, 1), HourOfFailures(hour + HOUR, 1, 0)
    assert await backend.failures.hours([FULL_ID, UNKNOWN_ID, "none"]) == {
        FULL_ID: [first, second],
        UNKNOWN_ID: [HourOfFailures(hour + HOUR, 1, 1)],
    }
    assert await backend.failures.hours([FULL_ID, UNKNOWN_ID], tenant=ACME) == {
        FULL_ID: [HourOfFailures(hour, 1, 1)],
        UNKNOWN_ID: [HourOfFailures(hour + HOUR, 1, 1)],
    }
    clock.advance(48 * HOUR)
    assert FULL_ID not in await backend.failures.hours([FULL_ID])


async def test_causes_are_groups_of_their_own(backend: Backend, clock: StoreClock) -> None:
    """The most recently seen first, in pages; filtered by state and provider."""
    await died(backend, clock, failure=UNKNOWN)
    await failed(backend, clock)
    await backend.failures.move(UNKNOWN_ID, GroupState.IGNORED)

    first = await backend.failures.list(limit=1)
    second = await backend.failures.list(limit=1, cursor=first.next)
    found = {
        name: [each.id for each in (await backend.failures.list(wanted)).rows]
        for name, wanted in {
            "open": FailureFilter(state=GroupState.OPEN),
            "ignored": FailureFilter(state=GroupState.IGNORED),
            "sandbox": FailureFilter(provider="sandbox"),
            "smtp": FailureFilter(provider="smtp"),
        }.items()
    }

    assert [each.id for each in first.rows + second.rows] == [FULL_ID, UNKNOWN_ID]
    assert second.next is None
    both = [FULL_ID, UNKNOWN_ID]
    assert found == {"open": [FULL_ID], "ignored": [UNKNOWN_ID], "sandbox": both, "smtp": []}


async def test_success_adds_nothing(backend: Backend) -> None:
    """Neither a first attempt nor a late one."""
    await accepted(backend.store, a_message())
    await attempted(backend.store, sent())

    assert (await backend.failures.list()).rows == []


async def test_message_counts_in_each_of_its_groups(backend: Backend, clock: StoreClock) -> None:
    """Every attempt in its own; it dies of the last."""
    await accepted(backend.store, a_message())
    await attempted(backend.store, retry(SECOND))
    clock.advance(SECOND)
    await attempted(backend.store, Dead(DeadReason.MAX_ATTEMPTS_EXCEEDED, UNKNOWN))

    groups = {each.id: each for each in (await backend.failures.list()).rows}
    last = groups.pop(UNKNOWN_ID)
    [before] = groups.values()
    assert (last.attempts, last.deaths) == (1, 1)
    assert (before.attempts, before.deaths) == (1, 0)
    assert before.reason == readable_reason(retry().failure.reason)


async def test_death_without_an_attempt_counts(backend: Backend, clock: StoreClock) -> None:
    """A message that expires while it waits has no provider; one that failed before dies of that."""
    await accepted(backend.store, a_message(ttl=timedelta(minutes=1)))
    clock.advance(past(timedelta(minutes=1)))
    await backend.upkeep.expire(limit=10)

    group = await group_in(backend, group_of(None, EXPIRED_UNSENT))
    assert (group.provider, group.attempts, group.deaths) == ("", 0, 1)


async def test_repeated_and_late_results_add_nothing(backend: Backend, clock: StoreClock) -> None:
    """An answer that was lost is asked for again; a worker that hung comes back."""
    await accepted(backend.store, a_message())
    job = await claimed_alone(backend.store)
    verdict = Dead(DeadReason.PERMANENT_ERROR, FULL)
    for _ in range(3):
        await settled(backend.store, job, verdict)
    await accepted(backend.store, a_message(BRASA))
    late = await claimed_and_declared(backend.store)
    clock.advance(past(HOLD))
    await backend.store.reap(limit=10)
    await settled(backend.store, late, Dead(DeadReason.PERMANENT_ERROR, UNKNOWN))

    [group] = (await backend.failures.list()).rows
    assert (group.deaths, group.code) == (1, "452")


async def test_redriven_message_that_dies_again_counts_again(
    backend: Backend, clock: StoreClock
) -> None:
    """Deaths are events: a redrive takes none back."""
    message = await died(backend, clock)
    await folded(backend)
    await backend.dead_letters.redrive([message], by="ana")
    await attempted(backend.store, Dead(DeadReason.PERMANENT_ERROR, FULL))

    report = await backend.failures.show(FULL_ID)
    assert report is not None
    assert (report.group.attempts, report.group.deaths) == (2, 2)
    assert report.samples == [message]


async def test_folds_at_the_same_time_add_each_note_once(place: Place) -> None:
    """Two processes may both think that they lead."""
    async with place.opened() as one, place.opened() as other:
        for number in range(12):
            await accepted(one.store, a_message(ACME if number % 3 else BRASA))
            await attempted(one.store, Dead(DeadReason.PERMANENT_ERROR, FULL))
        folds = [each.rollups.fold(limit=5, most=100) for each in (one, other) * 6]
        await asyncio.gather(*folds)

        report = await one.failures.show(FULL_ID)
    assert report is not None
    assert (report.group.attempts, report.group.deaths) == (12, 12)
    assert report.tenants == [TenantFailures(ACME, 8, 8), TenantFailures(BRASA, 4, 4)]


async def test_groups_are_there_for_the_next_opener(place: Place) -> None:
    """Folded ones and notes, and their states."""
    clock = place.clock
    async with place.opened() as first:
        await died(first, clock)
        await first.failures.move(FULL_ID, GroupState.ACKNOWLEDGED)
        await died(first, clock)

    async with place.opened() as second:
        group = await group_in(second)
    assert (group.state, group.deaths) == (GroupState.ACKNOWLEDGED, 2)


async def test_unknown_group_is_none(backend: Backend) -> None:
    """Neither shown nor changed."""
    assert await backend.failures.show("0123456789ab") is None
    assert await backend.failures.move("0123456789ab", GroupState.IGNORED) is None

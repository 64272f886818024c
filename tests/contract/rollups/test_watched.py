"""Rollups, watched: the last hour by minute, and the templates that fail most, from folded figures alone."""

from collections import Counter
from datetime import timedelta

from carteiro.model.figures import ServedShare, TemplateResult
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message, a_tenant, dead, messages, sent
from support.clock import StoreClock
from support.steps import accepted, attempted

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


async def _folded(backend: Backend) -> None:
    await backend.rollups.fold(limit=1000, most=100)


async def _ended(
    backend: Backend, tenant: str, template: str, *, dead_ones: int, all_: int
) -> None:
    for number in range(all_):
        await accepted(backend.store, a_message(tenant, template_type=template))
        await attempted(backend.store, dead() if number < dead_ones else sent())


async def test_minutes_are_separate_and_folded(backend: Backend, clock: StoreClock) -> None:
    """Each by its start; a note that is not folded yet is in none."""
    await accepted(backend.store, *messages(2))
    first = clock.at().replace(second=0, microsecond=0)
    clock.advance(MINUTE)
    await accepted(backend.store, *messages(3, BRASA, template_type="bill"))
    await _folded(backend)
    await accepted(backend.store, *messages(4))

    assert await backend.rollups.minutes(HOUR) == {
        first: Counter(accepted=2),
        first + MINUTE: Counter(accepted=3),
    }


async def test_hour_of_yesterday_ends_a_day_ago(backend: Backend, clock: StoreClock) -> None:
    """Neither what was before nor what came later."""
    for number in (1, 2, 3):
        await accepted(backend.store, *messages(number))
        clock.advance(HOUR)
    clock.advance(DAY - 3 * HOUR / 2)  # a day and half an hour after the second
    await _folded(backend)

    minutes = await backend.rollups.minutes(DAY + HOUR, until=DAY)
    assert list(minutes.values()) == [Counter(accepted=2)]


async def test_share_of_a_tenant_is_shown_against_its_weight(
    backend: Backend, clock: StoreClock
) -> None:
    """Of all that had ended messages in that minute; Jain's index is 1 if each had its share by weight."""
    await backend.tenants.define([a_tenant(ACME, weight=4.0), a_tenant(BRASA)])
    first = clock.at().replace(second=0, microsecond=0)
    await _ended(backend, ACME, "bill", dead_ones=1, all_=4)
    await _ended(backend, BRASA, "bill", dead_ones=0, all_=1)
    clock.advance(MINUTE)
    await _ended(backend, BRASA, "bill", dead_ones=0, all_=2)
    await _folded(backend)
    await _ended(backend, BRASA, "bill", dead_ones=0, all_=1)  # not folded yet

    fair, alone = await backend.rollups.shares("minute", HOUR, tenant=ACME)
    assert fair == ServedShare(first, served=4, of_all=5, weights=5.0, tenants=2, jain=1.0)
    assert alone == ServedShare(first + MINUTE, 0, of_all=2, weights=1.0, tenants=1, jain=1.0)
    assert (fair.share, fair.fair_share(4.0)) == (0.8, 0.8)
    assert (alone.share, alone.fair_share(4.0)) == (0.0, 0.8)
    [hour] = await backend.rollups.shares("hour", HOUR, tenant=BRASA)
    assert (hour.served, hour.of_all, round(hour.jain, 2)) == (3, 7, 0.8)


async def test_templates_that_fail_most_come_first(backend: Backend) -> None:
    """Over the minutes of the window; those without failures, or with few messages, are left out."""
    await _ended(backend, ACME, "half", dead_ones=2, all_=4)
    await _ended(backend, BRASA, "broken", dead_ones=3, all_=4)
    await _ended(backend, BRASA, "fine", dead_ones=0, all_=4)
    await _ended(backend, BRASA, "rare", dead_ones=2, all_=2)
    await _folded(backend)

    worst = [TemplateResult(BRASA, "broken", 1, 3), TemplateResult(ACME, "half", 2, 2)]
    assert await backend.rollups.worst(HOUR, least=3, limit=10) == worst
    assert await backend.rollups.worst(HOUR, least=3, limit=1) == worst[:1]


async def test_failures_leave_the_window(backend: Backend, clock: StoreClock) -> None:
    """Messages that were sent in it count only together with failures of it."""
    await _ended(backend, ACME, "welcome", dead_ones=1, all_=1)
    clock.advance(HOUR / 2)
    await _ended(backend, ACME, "welcome", dead_ones=0, all_=2)
    await _folded(backend)
    within = await backend.rollups.worst(HOUR, least=1, limit=10)
    clock.advance(HOUR / 2 + MINUTE)

    assert within == [TemplateResult(ACME, "welcome", 2, 1)]
    assert await backend.rollups.worst(HOUR, least=1, limit=10) == []


async def test_redriven_message_does_not_count_as_failed(backend: Backend) -> None:
    """It is subtracted from the minute in which it failed."""
    [message] = await accepted(backend.store, a_message(template_type="welcome"))
    await attempted(backend.store, dead())
    await _folded(backend)
    await backend.dead_letters.redrive([message], by="ana")
    await _folded(backend)

    assert await backend.rollups.worst(HOUR, least=0, limit=10) == []


async def test_tenant_with_many_failing_templates_leaves_room_for_others(backend: Backend) -> None:
    """Its worst one, then the worst of the others; the same for the templates that a past minute keeps."""
    for template in ("a", "b", "c"):
        await _ended(backend, ACME, template, dead_ones=3, all_=3)
    await _ended(backend, BRASA, "half", dead_ones=1, all_=2)
    await _folded(backend)

    found = await backend.rollups.worst(HOUR, least=1, limit=2)
    assert [(each.tenant, each.template) for each in found] == [(ACME, "a"), (BRASA, "half")]


async def test_tenant_with_many_active_templates_leaves_room_for_others(
    backend: Backend, clock: StoreClock
) -> None:
    """Of those that a past minute keeps."""
    for template in ("a", "b", "c"):
        await accepted(backend.store, *messages(3, ACME, template_type=template))
    await accepted(backend.store, *messages(1, BRASA, template_type="rare"))
    clock.advance(MINUTE)
    await backend.rollups.fold(limit=1000, most=2)

    found = [
        await backend.rollups.split("template", "minute", HOUR, tenant=each)
        for each in (ACME, BRASA)
    ]
    assert [[*each] for each in found] == [["a"], ["rare"]]

"""Store, counted: limits hold over all processes together; a refusal or a replay costs nothing."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from carteiro.model import (
    AcceptAnswer,
    Accepted,
    ApiLimits,
    IdempotencyKey,
    KeyConflict,
    OverLimit,
    Replayed,
    TenantDisabled,
    TenantUnknown,
)
from carteiro.ports import Backend, Store
from support.builders import ACME, BRASA, a_message, a_tenant, messages
from support.clock import MILLISECOND, StoreClock
from support.set_ups import Place
from support.steps import accepted, claimed_ids

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ANY = ApiLimits(None, None, None)
TWO = ApiLimits(2, None, None)


def _per(window: timedelta, count: int) -> ApiLimits:
    return ApiLimits(
        per_minute=count if window == MINUTE else None,
        per_hour=count if window == HOUR else None,
        per_day=count if window == DAY else None,
    )


def _end_of(window: timedelta, clock: StoreClock) -> datetime:
    now = clock.at()
    return now - (now - datetime(2000, 1, 1, tzinfo=now.tzinfo)) % window + window


def _to_the_end_of(window: timedelta, clock: StoreClock) -> None:
    clock.advance(_end_of(window, clock) - clock.at())


def _taken(answers: Sequence[AcceptAnswer]) -> list[bool]:
    return [isinstance(answer, Accepted) for answer in answers]


@pytest.mark.parametrize("window", [MINUTE, HOUR, DAY], ids=str)
async def test_window_has_a_limit_and_the_time_of_the_next(
    store: Store, clock: StoreClock, window: timedelta
) -> None:
    """Fixed windows of UTC: the limit, nothing remaining, the end of the window and the wait for it."""
    _to_the_end_of(window, clock)
    clock.advance(window / 4)
    limits = _per(window, 2)

    answers = await store.accept(messages(3, limits=limits))
    clock.advance(window / 4)
    [later] = await store.accept(messages(1, limits=limits))

    opens = _end_of(window, clock)
    assert _taken(answers) == [True, True, False]
    assert answers[2] == OverLimit(2, 0, opens, window * 3 / 4, window)
    assert later == OverLimit(2, 0, opens, window / 2, window)


@pytest.mark.parametrize("window", [MINUTE, HOUR, DAY], ids=str)
async def test_next_window_begins_at_zero(
    store: Store, clock: StoreClock, window: timedelta
) -> None:
    """At its very start, and not a moment before."""
    limits = _per(window, 1)
    await accepted(store, *messages(1, limits=limits))

    clock.advance(_end_of(window, clock) - clock.at() - MILLISECOND)
    before = await store.accept(messages(1, limits=limits))
    clock.advance(MILLISECOND)
    after = await store.accept(messages(2, limits=limits))

    assert _taken(before) == [False]
    assert _taken(after) == [True, False]


async def test_refused_message_leaves_nothing_behind(store: Store, clock: StoreClock) -> None:
    """No message, no job, no key: accepted later, it is new."""
    first, second = (
        a_message(limits=ApiLimits(1, None, None), key=IdempotencyKey(key, "digest"))
        for key in ("a", "b")
    )
    [_, refused] = await store.accept([first, second])

    _to_the_end_of(MINUTE, clock)
    [later] = await store.accept([second])

    assert isinstance(refused, OverLimit)
    assert isinstance(later, Accepted)
    assert await claimed_ids(store) == [first.id, second.id]


async def test_limit_that_opens_last_is_reported(store: Store, clock: StoreClock) -> None:
    """A client that waits for a shorter one would come in vain."""
    await accepted(store, *messages(2, limits=TWO))

    [minute] = await store.accept(messages(1, limits=TWO))
    [day] = await store.accept(messages(1, limits=ApiLimits(1, 9, 2)))
    [hour] = await store.accept(messages(1, limits=ApiLimits(1, 1, 9)))

    told = [
        (each.limit, each.resets_at) for each in (minute, day, hour) if isinstance(each, OverLimit)
    ]
    assert told == [
        (2, _end_of(MINUTE, clock)),
        (2, _end_of(DAY, clock)),
        (1, _end_of(HOUR, clock)),
    ]


async def test_every_window_counts_with_any_limits(store: Store, clock: StoreClock) -> None:
    """A limit that is set later counts earlier messages, under any other limit."""
    await accepted(store, *messages(2, limits=ApiLimits(5, None, None)))
    _to_the_end_of(MINUTE, clock)

    answers = await store.accept(messages(2, limits=ApiLimits(None, 3, None)))

    assert _taken(answers) == [True, False]


async def test_limit_of_zero_accepts_nothing(store: Store) -> None:
    """Zero is a limit; None is not."""
    nothing, anything = await store.accept(
        [a_message(limits=ApiLimits(0, None, None)), a_message(limits=ANY)]
    )

    assert isinstance(nothing, OverLimit)
    assert isinstance(anything, Accepted)


async def test_tenants_are_counted_separately(store: Store) -> None:
    """In one batch, item by item: one tenant's limit affects no other."""
    tenants = [ACME, BRASA, ACME, ACME, BRASA, BRASA]

    answers = await store.accept([a_message(tenant, limits=TWO) for tenant in tenants])

    assert _taken(answers) == [True, True, True, False, True, False]


async def test_message_without_limits_is_neither_counted_nor_refused(store: Store) -> None:
    """Messages of the library do not use up the limits of HTTP."""
    await accepted(store, *messages(5))
    await accepted(store, *messages(2, limits=TWO))

    await accepted(store, *messages(5))
    answers = await store.accept(messages(1, limits=TWO))

    assert _taken(answers) == [False]


async def test_message_that_is_not_accepted_costs_nothing(backend: Backend) -> None:
    """Known ids, replays, conflicts, unknown and disabled tenants and refusals are not counted."""
    limits = ApiLimits(3, None, None)
    known = a_message(limits=limits, key=IdempotencyKey("key", "digest"))
    await accepted(backend.store, known)
    await backend.tenants.define([a_tenant("closed", disabled=True)])

    answers = await backend.store.accept(
        [
            known,
            a_message(limits=limits, key=IdempotencyKey("key", "digest")),
            a_message(limits=limits, key=IdempotencyKey("key", "other")),
            a_message("nobody", limits=limits),
            a_message("closed", limits=limits),
            a_message(limits=ApiLimits(1, None, None)),
            *messages(3, limits=limits),
        ]
    )

    kinds = [Replayed, Replayed, KeyConflict, TenantUnknown, TenantDisabled, OverLimit]
    assert [type(each) for each in answers] == [*kinds, Accepted, Accepted, OverLimit]


async def test_known_key_is_replayed_beyond_the_limit(store: Store) -> None:
    """A client that lost the answer gets it again."""
    limits = ApiLimits(1, None, None)
    first = a_message(limits=limits, key=IdempotencyKey("key", "digest"))
    await accepted(store, first)

    [answer] = await store.accept([a_message(limits=limits, key=first.key)])

    assert isinstance(answer, Replayed)
    assert answer.id == first.id


async def test_concurrent_messages_are_counted_one_by_one(store: Store) -> None:
    """Nothing slips in between the count and the commit."""
    limits = ApiLimits(10, None, None)

    batches = await asyncio.gather(*(store.accept(messages(2, limits=limits)) for _ in range(16)))

    assert sum(sum(_taken(answers)) for answers in batches) == 10


async def test_openers_of_one_store_share_the_count(place: Place) -> None:
    """Two processes accept no more than one; the next knows their count."""
    limits = ApiLimits(5, None, None)
    async with place.opened() as first, place.opened() as second:
        batches = await asyncio.gather(
            *(opened.store.accept(messages(1, limits=limits)) for opened in (first, second) * 5)
        )
    async with place.opened() as third:
        later = await third.store.accept(messages(1, limits=limits))

    assert sum(sum(_taken(answers)) for answers in batches) == 5
    assert _taken(later) == [False]


async def test_clock_that_steps_back_locks_nobody_out(store: Store, clock: StoreClock) -> None:
    """A count of a window that is not open now does not count."""
    await accepted(store, *messages(2, limits=TWO))

    clock.back(HOUR)

    assert _taken(await store.accept(messages(3, limits=TWO))) == [True, True, False]
